/** Texts of what an agent does and of what went wrong, for people who never asked what a tool is. */

type Said = readonly [goes: string, done: string];
type SaidOf = (file: string) => Said;

export const steps = {
  stepWords: {
    remove: ((file) => [`Removing ${file}`, `Removed ${file}`]) as SaidOf,
    write: ((file) => [`Writing ${file}`, `Wrote ${file}`]) as SaidOf,
    change: ((file) => [`Changing ${file}`, `Changed ${file}`]) as SaidOf,
    list: (() => ["Looking through the files", "Looked through the files"]) as SaidOf,
    read: ((file) => [`Reading ${file}`, `Read ${file}`]) as SaidOf,
    search: (() => ["Searching the files", "Searched the files"]) as SaidOf,
    test: (() => ["Running the tests", "Ran the tests"]) as SaidOf,
    run: (() => ["Running a command", "Ran a command"]) as SaidOf,
    web: (() => ["Looking on the web", "Looked on the web"]) as SaidOf,
    plan: (() => ["Thinking it through", "Thought it through"]) as SaidOf,
    ask: (() => ["Asking you", "Asked you"]) as SaidOf,
    help: (() => ["Working with a helper", "Worked with a helper"]) as SaidOf,
    other: (() => ["Working", "Took a step"]) as SaidOf,
  },
  stepEnded: { error: "it did not work", denied: "not allowed", interrupted: "stopped" } as Readonly<Record<string, string>>,
  aFile: "a file",
  researching: (count: number) => (count === 1 ? "Researching…" : `Researching… ${count} at once`),
  editing: (first: string, count: number) => (count === 1 ? `Editing ${first}` : `Editing ${count} files`),
  edited: (first: string, count: number) => (count === 1 ? `Edited ${first}` : `Edited ${count} files`),
  lookedInto: "Looked into it",

  retrying: (reason: string, delay: number) => `The model did not answer (${reason}). Trying again in ${delay} s.`,
  fallback: (from: string, to: string, reason: string) => `${from} failed (${reason}); ${to} takes over.`,
  backgroundEnded: (command: string | null, status: string) => `${command ? `“${command}”` : "A background command"} ended: ${status}`,

  unreachable: "The server cannot be reached. Is “bowerbird serve” running?",
  answeredStatus: (status: number) => `The server answered with status ${status}.`,
  notValid: "not valid",
  uploadCut: "The upload was cut off. Try again.",
  noDirectories: "A directory cannot be dropped here. Open it and drop the files that are in it.",
  uploadCancelled: "The upload was cancelled.",
  unpriced: "unpriced",
  justNow: "now",
};
