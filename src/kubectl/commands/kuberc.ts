/** kubectl kuberc: the file with preferences. */
import { type Command, defineCommand } from '../command.ts'
import { requireSubcommand } from '../subcommand.ts'

export const kuberc: Command = defineCommand({
  name: 'kuberc',
  use: 'SUBCOMMAND [options]',
  long: 'Show and change the kuberc file, which holds aliases and values of flags to your liking.',
  examples: `# Show the preferences
kubectl kuberc view

# Let 'get' print wide tables
kubectl kuberc set --section defaults --command get --option output=wide

# Make 'getn' a name for 'get nodes'
kubectl kuberc set --section aliases --name getn --command get --prependarg nodes --option output=wide`,
  flags: {},
  commands: [
    {
      name: 'set',
      short: 'Set values in the kuberc file',
      load: async () => (await import('../kuberc/set.ts')).kubercSet,
    },
    {
      name: 'view',
      short: 'Show what the kuberc file holds',
      load: async () => (await import('../kuberc/view.ts')).kubercView,
    },
  ],
  run: requireSubcommand,
})
