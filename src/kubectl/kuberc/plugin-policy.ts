/** Applies the kuberc file's policy for credential plugins. */
import { basename, isAbsolute, normalize } from 'node:path'

import { type RunPlugin, runPlugin } from '#client/connection/exec-plugin.ts'
import { goQuote } from '#lib/go/text.ts'
import { ConfigError } from '#model/kubeconfig/config-error.ts'

import { findProgram } from '../plugins/dispatch.ts'
import type { PluginPolicy } from '../session/preference.ts'

/**
 * Runs a plugin if the policy allows it; otherwise rejects with ConfigError. With an allowlist it runs exactly the
 * checked file.
 */
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

/** The path of a command: from PATH, unless it contains a slash. */
async function resolved(command: string, path: string): Promise<string | undefined> {
  if (command.includes('/')) return isAbsolute(command) ? command : undefined
  return findProgram(command, path)
}
