/** kubectl rollout: watch, look back at, undo, hold and repeat the rollout of deployments and sets. */
import { type Command, defineCommand, usageError } from '../command.ts'

export const rollout: Command = defineCommand({
  name: 'rollout',
  use: 'SUBCOMMAND [options]',
  long: 'Manage the rollout of one or many resources: deployments, daemonsets and statefulsets.',
  examples: `# Go back to the deployment before
kubectl rollout undo deployment/abc

# Watch a rollout
kubectl rollout status daemonset/foo

# Restart a deployment
kubectl rollout restart deployment/abc`,
  flags: {},
  commands: [
    {
      name: 'history',
      short: 'Show earlier revisions',
      load: async () => (await import('../rollout/history-command.ts')).rolloutHistory,
    },
    {
      name: 'pause',
      short: 'Hold a deployment',
      load: async () => (await import('../rollout/change-command.ts')).rolloutPause,
    },
    {
      name: 'restart',
      short: 'Replace all pods',
      load: async () => (await import('../rollout/change-command.ts')).rolloutRestart,
    },
    {
      name: 'resume',
      short: 'Go on with a deployment that was held',
      load: async () => (await import('../rollout/change-command.ts')).rolloutResume,
    },
    {
      name: 'status',
      short: 'Show how far the rollout is',
      load: async () => (await import('../rollout/status-command.ts')).rolloutStatus,
    },
    {
      name: 'undo',
      short: 'Go back to an earlier rollout',
      load: async () => (await import('../rollout/undo-command.ts')).rolloutUndo,
    },
  ],
  // Others of its kind write their help to standard error.
  async run(invocation) {
    const { args, help, stdout } = invocation
    if (args.length > 0) throw usageError(invocation, `unknown command "${args.join(' ')}"`)
    stdout.write(await help())
    return 1
  },
})
