/** kubectl kuberc: shows and changes the preferences file. */
import { type Command, defineGroup, row } from '../command.ts'

export const kuberc: Command = defineGroup({
  name: 'kuberc',
  long: 'Show and change the kuberc file, which contains aliases and default values of flags.',
  examples: `# Show the preferences
kubectl kuberc view

# Make wide output the default of 'get'
kubectl kuberc set --section defaults --command get --option output=wide

# Create the alias 'getn' for 'get nodes'
kubectl kuberc set --section aliases --name getn --command get --prependarg nodes --option output=wide`,
  commands: [
    row('set', 'Set values in the kuberc file', async () => (await import('../kuberc/set.ts')).kubercSet),
    row('view', 'Show the contents of the kuberc file', async () => (await import('../kuberc/view.ts')).kubercView),
  ],
})
