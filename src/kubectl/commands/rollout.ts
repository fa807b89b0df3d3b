/** kubectl rollout: shows, undoes, pauses and restarts rollouts of deployments and sets. */
import { type Command, defineCommand, usageError, row } from '../command.ts'

export const rollout: Command = defineCommand({
  name: 'rollout',
  use: 'SUBCOMMAND [options]',
  long: 'Manage the rollout of one or many resources: deployments, daemonsets and statefulsets.',
  examples: `# Roll back a deployment
kubectl rollout undo deployment/abc

# Watch a rollout
kubectl rollout status daemonset/foo

# Restart a deployment
kubectl rollout restart deployment/abc`,
  flags: {},
  commands: [
    row(
      'history',
      'Show the revisions of a rollout',
      async () => (await import('../rollout/history-command.ts')).rolloutHistory,
    ),
    row('pause', 'Pause a deployment', async () => (await import('../rollout/change-command.ts')).rolloutPause),
    row('restart', 'Restart all pods', async () => (await import('../rollout/change-command.ts')).rolloutRestart),
    row(
      'resume',
      'Resume a paused deployment',
      async () => (await import('../rollout/change-command.ts')).rolloutResume,
    ),
    row(
      'status',
      'Show the progress of a rollout',
      async () => (await import('../rollout/status-command.ts')).rolloutStatus,
    ),
    row(
      'undo',
      'Roll back to an earlier revision',
      async () => (await import('../rollout/undo-command.ts')).rolloutUndo,
    ),
  ],
  // Other parent commands print their help on standard error.
  async run(invocation) {
    const { args, help, stdout } = invocation
    if (args.length > 0) throw usageError(invocation, `unknown command "${args.join(' ')}"`)
    stdout.write(await help())
    return 1
  },
})
