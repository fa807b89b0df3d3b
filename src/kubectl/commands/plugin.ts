/** kubectl plugin: lists programs in PATH that add commands. */
import { basename } from 'node:path'

import { flag } from '#lib/flags/flags.ts'
import { bool } from '#lib/flags/kinds.ts'

import { type Command, defineCommand, defineGroup, row } from '../command.ts'
import { KubectlError } from '../errors.ts'
import { listPlugins, PluginVerifier } from '../plugins/listing.ts'
import { COMMANDS } from './index.ts'

const EXAMPLES = `# List the plugins
kubectl plugin list

# List their names without directories
kubectl plugin list --name-only`

const list: Command = defineCommand({
  name: 'list',
  use: '[flags] [options]',
  long: 'List the plugins in PATH: executable files whose names begin with "kubectl-".',
  examples: EXAMPLES,
  flags: { 'name-only': flag(bool, false, 'Print names without directories.') },
  async run({ env, flags, stdout, stderr }) {
    const plugins = await listPlugins(env['PATH'] ?? '', (text) => stderr.write(text))
    const errors: string[] = []
    if (plugins.length === 0) errors.push('error: unable to find any kubectl plugins in your PATH')
    else stdout.write('The following compatible plugins are available:\n\n')
    const verifier = new PluginVerifier(COMMANDS)
    let warnings = 0
    for (const path of plugins) {
      stdout.write(`${flags['name-only'] ? basename(path) : path}\n`)
      const problems = await verifier.problemsOf(path)
      for (const problem of problems) stderr.write(`  - ${problem}\n`)
      warnings += problems.length
    }
    if (warnings > 0) {
      errors.push(
        `error: ${warnings === 1 ? 'one plugin warning was found' : `${warnings} plugin warnings were found`}`,
      )
    }
    if (errors.length > 0) throw new KubectlError(errors.map((line) => `${line}\n`).join(''))
  },
})

export const plugin: Command = defineGroup({
  name: 'plugin',
  use: '[flags] [options]',
  long: 'Work with plugins: programs whose names begin with "kubectl-" and that add commands to kubectl.',
  examples: EXAMPLES,
  commands: [row('list', 'List the plugins in PATH', () => Promise.resolve(list))],
})
