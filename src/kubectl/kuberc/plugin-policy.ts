/** Which credential plugins may run, as preferences say. */
import { basename, isAbsolute, normalize } from 'node:path'

import { type RunPlugin, runPlugin } from '#client/exec-plugin.ts'
import { goQuote } from '#lib/go-text.ts'
import { ConfigError } from '#model/kubeconfig/config-error.ts'

import { findProgram } from '../plugins/dispatch.ts'
import type { PluginPolicy } from './preference.ts'

/** Runs what the policy lets run; rejects with ConfigError for others. Under a list only the file that was looked at is run. */
export function runAllowed({ type, allowlist = [] }: PluginPolicy): RunPlugin {
  return async (command, args, context) => {
    if (type === 'DenyAll') throw new ConfigError(`plugin ${goQuote(command)} not allowed: policy set to "DenyAll"`)
    if (type !== 'Allowlist') return runPlugin(command, args, context)
    const path = context.env['PATH'] ?? ''
    const allowed = allowlist.map((entry) => entry.command)
    const file = await resolved(normalize(command), path)
    if (allowed.includes(normalize(command))) return runPlugin(file ?? command, args, context)
    if (file === undefined) {
      const why = `exec: ${goQuote(command)}: executable file not found in $PATH`
      throw new ConfigError(
        `plugin path ${goQuote(command)} cannot be resolved for credential plugin allowlist check: ${why}`,
      )
    }
    const same = allowed.filter((entry) => entry === file || basename(entry) === basename(file))
    for (const entry of same) if ((await resolved(entry, path)) === file) return runPlugin(file, args, context)
    throw new ConfigError(`plugin path ${goQuote(file)} is not permitted by the credential plugin allowlist`)
  }
}

/** The file that a name stands for: in PATH, unless it says where it is. */
async function resolved(command: string, path: string): Promise<string | undefined> {
  if (command.includes('/')) return isAbsolute(command) ? command : undefined
  return findProgram(command, path)
}
