/** The small parts all pages share: dialog, menu, problem, empty place, icon button. Not here: any fact of Bowerbird. */

import { AlertTriangle, CircleAlert, Info, X, type LucideIcon } from "lucide-react";
import { useEffect, useId, useLayoutEffect, useRef, useState, type KeyboardEvent, type ReactNode } from "react";
import { t } from "../text.ts";

interface IconButtonProps {
  icon: LucideIcon;
  label: string;
  onClick: () => void;
  className?: string;
  pressed?: boolean;
  disabled?: boolean;
  size?: number;
}

/** A button that shows only a picture; its label is read out and shown on hover. */
export function IconButton({ icon: Icon, label, onClick, className = "plain", pressed, disabled, size = 18 }: IconButtonProps) {
  return (
    <button
      type="button"
      className={`button icon ${className}`}
      aria-label={label}
      title={label}
      aria-pressed={pressed}
      disabled={disabled}
      onClick={onClick}
    >
      <Icon size={size} aria-hidden="true" />
    </button>
  );
}

interface DialogProps {
  title: string;
  onClose: () => void;
  children: ReactNode;
  foot?: ReactNode;
  wide?: boolean;
}

const FOCUSABLE = "a[href], button:not(:disabled), input:not(:disabled), select:not(:disabled), textarea:not(:disabled), summary, [tabindex='0']";

/** Let Tab go round inside: from the last part to the first, not to the browser's own buttons. */
function goRound(event: KeyboardEvent<HTMLElement>): void {
  if (event.key !== "Tab") return;
  const all = [...event.currentTarget.querySelectorAll<HTMLElement>(FOCUSABLE)].filter((part) => part.checkVisibility());
  const [first, last] = [all[0], all.at(-1)];
  const leaves = event.shiftKey ? document.activeElement === first : document.activeElement === last;
  if (!leaves || !first || !last) return;
  event.preventDefault();
  (event.shiftKey ? last : first).focus();
}

/** A modal dialog: the focus stays inside and goes back where it was. */
export function Dialog({ title, onClose, children, foot, wide }: DialogProps) {
  const ref = useRef<HTMLDialogElement>(null);
  const heading = useId();
  // Before it is painted: a key pressed the moment it is seen must find it open.
  useLayoutEffect(() => {
    const dialog = ref.current;
    const before = document.activeElement as HTMLElement | null;
    if (dialog && !dialog.open) dialog.showModal();
    return () => {
      dialog?.close();
      before?.focus();
    };
  }, []);
  return (
    <dialog
      ref={ref}
      className={`dialog ${wide ? "wide" : ""}`}
      aria-labelledby={heading}
      onKeyDown={goRound}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      // A browser may close it without asking first (a second Escape in a row); bubbling ones are of a dialog inside.
      onClose={(event) => event.target === ref.current && !ref.current.open && onClose()}
      onClick={(event) => {
        if (event.target === ref.current) onClose();
      }}
    >
      <div className="dialog-head">
        <h2 id={heading}>{title}</h2>
        <IconButton icon={X} label={t.close} onClick={onClose} />
      </div>
      <div className="dialog-body">{children}</div>
      {foot && <div className="dialog-foot">{foot}</div>}
    </dialog>
  );
}

export interface MenuItem {
  label: string;
  icon?: LucideIcon;
  onPick: () => void;
  danger?: boolean;
  checked?: boolean;
}

interface MenuProps {
  label: string;
  icon: LucideIcon;
  items: readonly (MenuItem | "line")[];
  small?: boolean;
  up?: boolean;
  /** The list begins at the button's right edge. */
  end?: boolean;
  /** Shown beside the picture: the button is as wide as there is room. */
  children?: ReactNode;
}

/** A button with a list of actions; arrows move, Escape closes. */
export function Menu({ label, icon: Icon, items, small, up, end, children }: MenuProps) {
  const [open, setOpen] = useState(false);
  const root = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!open) return;
    root.current?.querySelector<HTMLButtonElement>(".menu-list button")?.focus();
    const away = (event: PointerEvent): void => {
      if (!root.current?.contains(event.target as Node)) setOpen(false);
    };
    document.addEventListener("pointerdown", away);
    return () => document.removeEventListener("pointerdown", away);
  }, [open]);
  const shut = (): void => {
    setOpen(false);
    root.current?.querySelector<HTMLButtonElement>(":scope > button")?.focus();
  };
  const move = (by: number): void => {
    const all = [...(root.current?.querySelectorAll<HTMLButtonElement>(".menu-list button") ?? [])];
    const at = all.indexOf(document.activeElement as HTMLButtonElement);
    all[(at + by + all.length) % all.length]?.focus();
  };
  return (
    <div
      className={`menu ${children ? "whole" : ""}`}
      ref={root}
      onKeyDown={(event) => {
        if (!open) return;
        if (event.key === "Escape") shut();
        else if (event.key === "ArrowDown") move(1);
        else if (event.key === "ArrowUp") move(-1);
        else return;
        event.preventDefault();
        event.stopPropagation();
      }}
    >
      <button
        type="button"
        className={`button plain ${children ? "" : "icon"} ${small ? "small" : ""}`}
        aria-label={label}
        title={label}
        aria-haspopup="menu"
        aria-expanded={open}
        onClick={() => setOpen(!open)}
      >
        <Icon size={small ? 16 : 18} aria-hidden="true" />
        {children}
      </button>
      {open && (
        <div className={`menu-list ${up ? "up" : ""} ${end ? "end" : ""}`} role="menu" aria-label={label}>
          {items.map((item, index) =>
            item === "line" ? (
              <hr key={`line-${index}`} />
            ) : (
              <button
                key={item.label}
                type="button"
                role={item.checked === undefined ? "menuitem" : "menuitemradio"}
                aria-checked={item.checked}
                className={item.danger ? "danger" : ""}
                onClick={() => {
                  shut();
                  item.onPick();
                }}
              >
                {item.icon && <item.icon size={16} aria-hidden="true" />}
                <span className="grow">{item.label}</span>
                {item.checked && <span aria-hidden="true">✓</span>}
              </button>
            ),
          )}
        </div>
      )}
    </div>
  );
}

interface ProblemProps {
  tone?: "error" | "warn" | "info";
  children: ReactNode;
  actions?: ReactNode;
}

/** What went wrong and what to do about it. */
export function Problem({ tone = "error", children, actions }: ProblemProps) {
  const Icon = tone === "error" ? CircleAlert : tone === "warn" ? AlertTriangle : Info;
  return (
    <div className={`problem ${tone}`} role={tone === "error" ? "alert" : "status"}>
      <Icon size={17} aria-hidden="true" />
      <div className="grow">
        {children}
        {actions && <div className="actions">{actions}</div>}
      </div>
    </div>
  );
}

interface EmptyProps {
  icon: LucideIcon;
  title: string;
  /** It is the whole page, so that its title is the page's. */
  page?: boolean;
  children?: ReactNode;
}

/** A place where nothing is yet, and what would bring something there. */
export function Empty({ icon: Icon, title, page, children }: EmptyProps) {
  const Title = page ? "h1" : "h2";
  return (
    <div className="empty">
      <Icon size={36} strokeWidth={1.4} aria-hidden="true" />
      <Title>{title}</Title>
      {children}
    </div>
  );
}

export function Loading({ label }: { label: string }) {
  return (
    <div className="empty" role="status">
      <span className="hidden">{label}</span>
      <div className="lines" aria-hidden="true">
        <div className="skeleton" />
        <div className="skeleton" />
        <div className="skeleton" />
      </div>
    </div>
  );
}
