/** kubectl kuberc view: prints the preferences, or offers to create a default file. */
import { type Command, defineCommand, type Invocation } from '../command.ts'
import { KubectlError } from '../errors.ts'
import { readAll } from '../manifests/manifests.ts'
import { printerOf, printFlags } from '../printing.ts'
import {
  jsonOf,
  KUBERC_FLAG,
  NEW_PREFERENCE,
  locationOf,
  readPreferenceFile,
  RECOMMENDED,
  savePreferenceFile,
} from './preference-file.ts'

const { output, ...printing } = printFlags()

const FLAGS = { ...KUBERC_FLAG, ...printing, output: { ...output, initial: 'yaml' } }

export const kubercView: Command = defineCommand({
  name: 'view',
  use: '[options]',
  long: 'Show the contents of the kuberc file.',
  examples: `# Show the preferences as YAML
kubectl kuberc view

# Show them as JSON
kubectl kuberc view --output json

# Show another file
kubectl kuberc view --kuberc /path/to/kuberc`,
  flags: FLAGS,
  async run(invocation) {
    const location = locationOf(invocation)
    const found = await readPreferenceFile(location.file, invocation.cwd)
    if (found === undefined && location.isExplicit) throw new KubectlError(`kuberc file not found at ${location.file}`)
    if (found === undefined) return offer(invocation, location.file)
    // An empty file has no preferences to show.
    const shown = found === NEW_PREFERENCE ? { ...found, kind: '', apiVersion: '' } : found
    const printer = await printerOf(invocation, { operation: '', keepOrder: true })
    printer.print(jsonOf({ ...shown, defaults: shown.defaults ?? [], aliases: shown.aliases ?? [] }), invocation.stdout)
  },
})

async function offer(invocation: Invocation, file: string): Promise<void> {
  const { stdin, stdout } = invocation
  stdout.write(`kuberc file not found at ${file}\n`)
  stdout.write('Would you like to generate a default kuberc file with recommended options? (y/N): ')
  const [answer = ''] = (await readAll(stdin())).toString().split('\n')
  if (answer.trim().toLowerCase() === 'y') await savePreferenceFile(invocation, file, RECOMMENDED)
}
