/** Texts that say why a change needs a look of its own, or did not land. */

export const reasons = {
  flagReason: "Needs a look of its own.",
  flagReasons: {
    "git-exec": "Git would run this: hooks, filters or configuration.",
    "git-data": "Part of the repository's own data.",
    ci: "Runs on the build server with its secrets.",
    "agent-config": "Changes what agents are told or may do.",
    "shell-rc": "Read by shells and tools when they start.",
    "editor-exec": "Editors run what it says.",
    lockfile: "Decides which packages are installed.",
    "symlink-out": "A link that leads out of the workspace.",
    "exec-bit": "Becomes executable.",
    setuid: "Would run with another user's rights.",
    "case-clash": "Another file has the same name in other letters.",
    "build-exec": "Runs when the project is built or tested.",
    configured: "Your settings ask for a look at this path.",
  } as Readonly<Record<string, string>>,
  acceptItself: (reason: string) => `It must be accepted by itself (${reason}).`,
  refusals: {
    both_modified: "You changed the same lines since the agent read them.",
    both_created: "You created a file of the same name meanwhile.",
    delete_modify: "You deleted it; the agent changed it.",
    modify_delete: "You changed it; the agent deleted it.",
    binary: "Both changed it, and it is no text that could be merged.",
    uncertain_base: "It changed while a command ran, so nobody knows what it was before.",
    mode: "You and the agent changed its permissions differently.",
    type: "It became another kind of file.",
    symlink: "You and the agent let the link point elsewhere.",
    dir_gained: "You added files in a directory that the agent deleted.",
    unchanged: "There is nothing to land here any more.",
  } as Readonly<Record<string, string>>,
};
