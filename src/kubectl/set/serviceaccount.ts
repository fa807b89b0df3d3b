/** kubectl set serviceaccount: sets the service account of a workload's pods. */
import { type Command, defineCommand } from '../command.ts'
import { KubectlError } from '../errors.ts'
import { dryRunOf, withDryRun } from '../flag-sets.ts'
import { printerOf } from '../printing.ts'
import { RECORD_FLAG } from '../recording.ts'
import { changeAll, LOCAL_SERVER_RUN, selectObjects, podSpecOf, setFlags } from './changing.ts'

export const setServiceAccount: Command = defineCommand({
  name: 'serviceaccount',
  aliases: ['sa'],
  use: '(-f FILENAME | TYPE NAME) SERVICE_ACCOUNT [options]',
  long: 'Set the service account of the pods of a workload.',
  examples: `# Set the service account of deployment nginx-deployment
kubectl set serviceaccount deployment nginx-deployment serviceaccount1`,
  flags: { ...setFlags(), ...RECORD_FLAG },
  async run(invocation) {
    const { args, flags } = invocation
    const dryRun = dryRunOf(flags['dry-run'], invocation)
    if (flags.local && dryRun === 'server') throw new KubectlError(LOCAL_SERVER_RUN)
    const operation = 'serviceaccount updated'
    await printerOf(invocation, { operation: withDryRun(operation, dryRun) })
    const serviceAccountName = args.at(-1)
    if (serviceAccountName === undefined) throw new KubectlError('serviceaccount is required')
    const infos = await selectObjects(invocation, args.slice(0, -1), { refusesLocalNames: false })
    await changeAll(invocation, infos, {
      dryRun,
      operation,
      failure: 'failed to patch ServiceAccountName ',
      sendsAlways: true,
      change(object) {
        podSpecOf(object).serviceAccountName = serviceAccountName
      },
    })
  },
})
