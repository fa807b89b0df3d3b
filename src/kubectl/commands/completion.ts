/** kubectl completion: code for a shell that asks kubectl how a line may go on. */
import { readFile } from 'node:fs/promises'

import { goQuote } from '#lib/go-text.ts'

import { type Command, defineCommand, usageError } from '../command.ts'

const ENDINGS: Readonly<Record<string, string>> = { bash: 'bash', zsh: 'zsh', fish: 'fish', powershell: 'ps1' }

/** Shells that there is code for. */
export const SHELLS: readonly string[] = Object.keys(ENDINGS)

export const completion: Command = defineCommand({
  name: 'completion',
  use: 'SHELL [options]',
  long: 'Print code for completion in a shell: bash, zsh, fish or powershell. The shell must evaluate it, as the start files of most do.',
  examples: `# Complete in this bash, and in all that start later
source <(kubectl completion bash)
echo 'source <(kubectl completion bash)' >> ~/.bashrc

# Complete in this zsh, and in all that start later
source <(kubectl completion zsh)
kubectl completion zsh > "\${fpath[1]}/_kubectl"

# Complete in this fish, and in all that start later
kubectl completion fish | source
kubectl completion fish > ~/.config/fish/completions/kubectl.fish

# Complete in this PowerShell, and in all that start later
kubectl completion powershell | Out-String | Invoke-Expression
kubectl completion powershell >> $PROFILE`,
  flags: {},
  async run(invocation) {
    const [shell, ...others] = invocation.args
    if (shell === undefined) throw usageError(invocation, 'Shell not specified.')
    if (others.length > 0) throw usageError(invocation, 'Too many arguments. Expected only the shell type.')
    const ending = Object.hasOwn(ENDINGS, shell) ? ENDINGS[shell] : undefined
    if (ending === undefined) throw usageError(invocation, `Unsupported shell type ${goQuote(shell)}.`)
    invocation.stdout.write(await readFile(new URL(`../completion/scripts/kubectl.${ending}`, import.meta.url)))
  },
})
