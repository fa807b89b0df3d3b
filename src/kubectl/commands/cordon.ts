/** kubectl cordon and uncordon: mark nodes as unschedulable or schedulable. */
import { type Command, defineCommand } from '../command.ts'
import { checkNodes, cordonNodes, selectNodes, NODE_FLAGS } from '../drain/nodes.ts'
import { dryRunOf } from '../flag-sets.ts'

function cordonCommand(name: 'cordon' | 'uncordon', long: string): Command {
  return defineCommand({
    name,
    use: 'NODE [options]',
    long,
    examples: `# ${name === 'cordon' ? 'Mark node "foo" as unschedulable' : 'Mark node "foo" as schedulable'}\nkubectl ${name} foo`,
    flags: NODE_FLAGS,
    completes: { names: 'node' },
    async run(invocation) {
      checkNodes(invocation, `${name} NODE`)
      const dryRun = dryRunOf(invocation.flags['dry-run'], invocation)
      await invocation.session.config()
      const nodes = await selectNodes(invocation)
      await cordonNodes(invocation, nodes, { isWanted: name === 'cordon', dryRun })
    },
  })
}

export const cordon: Command = cordonCommand('cordon', 'Mark a node as unschedulable.')
export const uncordon: Command = cordonCommand('uncordon', 'Mark a node as schedulable.')
