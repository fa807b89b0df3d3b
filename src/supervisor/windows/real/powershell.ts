/** Runs the scripts of `scripts.ts` in PowerShell: the script by -EncodedCommand, its input by standard input. */
import { spawn } from 'node:child_process'
import { text } from 'node:stream/consumers'

import { type ScriptName, scriptText } from './scripts.ts'

export type PowerShell = (name: ScriptName, input: object) => Promise<string>

/** The arguments of PowerShell. */
export function powershellArgs(name: ScriptName): string[] {
  const encoded = Buffer.from(scriptText(name), 'utf16le').toString('base64')
  return ['-NoLogo', '-NoProfile', '-NonInteractive', '-ExecutionPolicy', 'Bypass', '-EncodedCommand', encoded]
}

/** PowerShell is missing or failed. */
export class PowerShellError extends Error {
  override readonly name = 'PowerShellError'
}

/** Rejects with PowerShellError and its error output. */
export const runPowerShell: PowerShell = async (name, input) => {
  const child = spawn('powershell.exe', powershellArgs(name), { stdio: 'pipe', windowsHide: true })
  child.stdin.on('error', () => undefined)
  child.stdin.end(JSON.stringify(input))
  const ended = new Promise<number>((resolve, reject) => {
    child.on('error', (cause) => reject(new PowerShellError(`Cannot run powershell.exe: ${cause.message}`, { cause })))
    child.on('close', (code) => resolve(code ?? 1))
  })
  const [output, errors, code] = await Promise.all([text(child.stdout), text(child.stderr), ended])
  if (code !== 0) throw new PowerShellError(`${name} failed: ${errors.trim() || `exit code ${code}`}`)
  return output.trim()
}

/** Quotes one argument for a Windows command line. */
export function quoteArgument(argument: string): string {
  if (argument !== '' && !/[\s"]/.test(argument)) return argument
  // Backslashes are literal unless a quote follows.
  const escaped = argument.replaceAll(/(\\*)"/g, '$1$1\\"').replace(/(\\+)$/, '$1$1')
  return `"${escaped}"`
}
