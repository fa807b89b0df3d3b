/** kubectl completion: prints the completion script of a shell. */
import { readFile } from 'node:fs/promises'

import { goQuote } from '#lib/go/text.ts'

import { type Command, defineCommand, usageError } from '../command.ts'

const ENDINGS: Readonly<Record<string, string>> = { bash: 'bash', zsh: 'zsh', fish: 'fish', powershell: 'ps1' }

/** Shells with a completion script. */
export const SHELLS: readonly string[] = Object.keys(ENDINGS)

export const completion: Command = defineCommand({
  name: 'completion',
  use: 'SHELL [options]',
  long: 'Print a completion script for bash, zsh, fish or powershell. The shell must evaluate the script, usually in its start file.',
  examples: `# Enable completion in the current bash and in later ones
source <(kubectl completion bash)
echo 'source <(kubectl completion bash)' >> ~/.bashrc

# Enable completion in the current zsh and in later ones
source <(kubectl completion zsh)
kubectl completion zsh > "\${fpath[1]}/_kubectl"

# Enable completion in the current fish and in later ones
kubectl completion fish | source
kubectl completion fish > ~/.config/fish/completions/kubectl.fish

# Enable completion in the current PowerShell and in later ones
kubectl completion powershell | Out-String | Invoke-Expression
kubectl completion powershell >> $PROFILE`,
  flags: {},
  completes: { words: SHELLS },
  async run(invocation) {
    const [shell, ...others] = invocation.args
    if (shell === undefined) throw usageError(invocation, 'Shell not specified.')
    if (others.length > 0) throw usageError(invocation, 'Too many arguments. Expected only the shell type.')
    const ending = Object.hasOwn(ENDINGS, shell) ? ENDINGS[shell] : undefined
    if (ending === undefined) throw usageError(invocation, `Unsupported shell type ${goQuote(shell)}.`)
    invocation.stdout.write(await readFile(new URL(`../completion/scripts/kubectl.${ending}`, import.meta.url)))
  },
})
