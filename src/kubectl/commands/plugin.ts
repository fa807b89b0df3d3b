/** kubectl plugin: which programs in PATH add commands. */
import { basename } from 'node:path'

import { flag } from '#lib/flags/flags.ts'
import { bool } from '#lib/flags/kinds.ts'

import { type Command, defineCommand } from '../command.ts'
import { KubectlError } from '../errors.ts'
import { listPlugins, PluginVerifier } from '../plugins/listing.ts'
import { requireSubcommand } from '../subcommand.ts'
import { COMMANDS } from './index.ts'

const EXAMPLES = `# List the plugins that there are
kubectl plugin list

# List them by name, without their folders
kubectl plugin list --name-only`

const list: Command = defineCommand({
  name: 'list',
  use: '[flags] [options]',
  long: 'List the plugins in PATH: files that may be run and whose names begin with "kubectl-".',
  examples: EXAMPLES,
  flags: { 'name-only': flag(bool, false, 'Print names without their folders.') },
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

export const plugin: Command = defineCommand({
  name: 'plugin',
  use: '[flags] [options]',
  long: 'Work with plugins: programs whose names begin with "kubectl-" and that stand for commands which kubectl does not have.',
  examples: EXAMPLES,
  flags: {},
  commands: [
    {
      name: 'list',
      short: 'List the plugins in PATH',
      load: () => Promise.resolve(list),
    },
  ],
  run: requireSubcommand,
})
