/** kubectl cordon and uncordon: whether nodes take more pods. */
import { type Command, defineCommand } from '../command.ts'
import { checkNodes, cordonNodes, meantNodes, NODE_FLAGS } from '../drain/nodes.ts'
import { dryRunOf } from '../flag-sets.ts'

function cordonCommand(name: 'cordon' | 'uncordon', long: string): Command {
  return defineCommand({
    name,
    use: 'NODE [options]',
    long,
    examples: `# Do so with node "foo"\nkubectl ${name} foo`,
    flags: NODE_FLAGS,
    async run(invocation) {
      checkNodes(invocation, `${name} NODE`)
      const dryRun = dryRunOf(invocation.flags['dry-run'], invocation)
      await invocation.session.config()
      const nodes = await meantNodes(invocation)
      await cordonNodes(invocation, nodes, { isWanted: name === 'cordon', dryRun })
    },
  })
}

export const cordon: Command = cordonCommand('cordon', 'Take no more pods on a node.')
export const uncordon: Command = cordonCommand('uncordon', 'Take pods on a node again.')
