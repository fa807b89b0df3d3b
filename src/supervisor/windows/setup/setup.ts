/** Sets up a Windows machine as a worker, and undoes the set-up. */
import { type Step, takeSteps, undoSteps } from '../../steps.ts'
import type { SetupContext } from './context.ts'
import { checkPreconditions } from './preconditions.ts'
import { removeContainers, SETUP_STEPS } from './steps.ts'

/**
 * Returns the names of performed steps. Rejects with CrashError or RetryError; completed steps stay, and a second run
 * continues.
 */
export async function setUp(context: SetupContext): Promise<string[]> {
  await checkPreconditions(context)
  return takeSteps(SETUP_STEPS, context, context.host.say)
}

const LEAVING: readonly string[] = ['Kubeproxy', 'Kubelet', 'FlannelD']

/** Stops services that would recreate removed objects. */
const stopped: Step<SetupContext> = {
  name: 'running services',
  isDone: async () => true,
  take: async () => undefined,
  async undo(context) {
    const { services } = context.host
    for (const name of LEAVING) if ((await services.state(name)) === 'running') await services.stop(name)
    await removeContainers(context)
    await context.host.network.pods.removeServicePolicies()
  },
}

/** Tries everything; rejects with an AggregateError if a step fails. */
export async function reset(context: SetupContext): Promise<void> {
  const { host, paths } = context
  await undoSteps([...SETUP_STEPS, stopped], context, host.say)
  for (const folder of [paths.logs, paths.flannelFolder]) {
    await host.files.empty(folder)
    await host.files.remove(folder)
  }
}
