/** kubectl kuberc view: the preferences there are; who has none is offered some. */
import { type Command, defineCommand, type Invocation } from '../command.ts'
import { KubectlError } from '../errors.ts'
import { readAll } from '../manifests.ts'
import { printerOf, printFlags } from '../printing.ts'
import { jsonOf, KUBERC_FLAG, NEW_PREFERENCE, placeOf, readWritten, RECOMMENDED, saveWritten } from './written.ts'

const { output, ...printing } = printFlags()

const FLAGS = { ...KUBERC_FLAG, ...printing, output: { ...output, initial: 'yaml' } }

export const kubercView: Command = defineCommand({
  name: 'view',
  use: '[options]',
  long: 'Show what the kuberc file holds.',
  examples: `# Show the preferences as YAML
kubectl kuberc view

# Show them as JSON
kubectl kuberc view --output json

# Show those of another file
kubectl kuberc view --kuberc /path/to/kuberc`,
  flags: FLAGS,
  async run(invocation) {
    const place = placeOf(invocation)
    const found = await readWritten(place.file, invocation.cwd)
    if (found === undefined && place.isExplicit) throw new KubectlError(`kuberc file not found at ${place.file}`)
    if (found === undefined) return offer(invocation, place.file)
    // An empty file is no preferences, of which nothing can be shown.
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
  if (answer.trim().toLowerCase() === 'y') await saveWritten(invocation, file, RECOMMENDED)
}
