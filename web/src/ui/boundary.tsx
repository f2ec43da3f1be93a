/**
 * What stays when something cannot be drawn: the place of it, in words, and everything around it.
 *
 * Not here: what went wrong on the server (`kit.tsx` has Problem), which pieces have a boundary of their own.
 */

import { Component, type ErrorInfo, type ReactNode } from "react";
import { t } from "../text.ts";
import { Problem } from "./kit.tsx";

interface BoundaryProps {
  /** Drawn again when this changes: another page, or a message that grew. */
  of: unknown;
  /** Shown in place of what failed; a short notice when left out. */
  instead?: ReactNode;
  children: ReactNode;
}

interface BoundaryState {
  failed: boolean;
  of: unknown;
}

export class Boundary extends Component<BoundaryProps, BoundaryState> {
  override state: BoundaryState = { failed: false, of: this.props.of };

  static getDerivedStateFromError(): Partial<BoundaryState> {
    return { failed: true };
  }

  static getDerivedStateFromProps(props: BoundaryProps, state: BoundaryState): Partial<BoundaryState> | null {
    return props.of === state.of ? null : { failed: false, of: props.of };
  }

  override componentDidCatch(error: Error, info: ErrorInfo): void {
    console.error("this part could not be shown", error, info.componentStack);
  }

  override render(): ReactNode {
    if (!this.state.failed) return this.props.children;
    return this.props.instead ?? <Problem tone="warn">{t.cannotShow}</Problem>;
  }
}

/** A whole page that could not be drawn: said so, with ways out. */
export function BrokenPage({ home }: { home: string }) {
  return (
    <div className="page" role="main">
      <div className="page-inner">
        <Problem
          actions={
            <>
              <button type="button" className="button small" onClick={() => window.location.reload()}>
                {t.reloadPage}
              </button>
              <a className="button small" href={home}>
                {t.toStart}
              </a>
            </>
          }
        >
          {t.pageBroken}
        </Problem>
      </div>
    </div>
  );
}
