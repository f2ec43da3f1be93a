/** Files on their way to the server: how far they are, and the way to stop them. */

import { ApiError, upload } from "../api/client.ts";
import { t } from "../text.ts";
import { complain, toast } from "../ui/toasts.tsx";

export interface Transfer {
  name: string;
  share: number;
  cancel: () => void;
}

export type ShowTransfer = (transfer: Transfer | null) => void;

/** Send files onto a branch; `show` is told how far they are. Returns their paths: none where it failed, which is said. */
export async function transferred(files: readonly File[], folder: string, conversation: string, show: ShowTransfer): Promise<readonly string[]> {
  const name = files.length === 1 ? (files[0]?.name ?? "") : t.manyFiles(files.length);
  const { done, cancel } = upload(files, folder, conversation, (share) => show({ name, share, cancel }));
  show({ name, share: 0, cancel });
  try {
    return await done;
  } catch (error) {
    if (error instanceof ApiError && error.code === "cancelled") toast(error.message);
    else complain(error);
    return [];
  } finally {
    show(null);
  }
}

export function TransferRow({ transfer }: { transfer: Transfer }) {
  return (
    <div className="uploading" role="status">
      <span className="clip">{transfer.name}</span>
      <progress max={1} value={transfer.share} aria-label={t.uploading} />
      <button type="button" className="button small" onClick={transfer.cancel}>
        {t.cancel}
      </button>
    </div>
  );
}
