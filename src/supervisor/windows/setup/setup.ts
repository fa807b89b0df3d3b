/** Makes a Windows machine a worker, and one that is a worker a plain machine again. */
import { type Step, takeSteps, undoSteps } from '../../steps.ts'
import type { SetupContext } from './context.ts'
import { checkPreconditions } from './preconditions.ts'
import { removeContainers, SETUP_STEPS } from './steps.ts'

/** Names of the steps that were to be done. Rejects with CrashError or RetryError; then what was done stays, and a second run goes on. */
export async function setUp(context: SetupContext): Promise<string[]> {
  await checkPreconditions(context)
  return takeSteps(SETUP_STEPS, context, context.host.say)
}

const LEAVING: readonly string[] = ['Kubeproxy', 'Kubelet', 'FlannelD']

/** What goes before all: nobody may make anew what is removed. */
const stopped: Step<SetupContext> = {
  name: 'services that run',
  isDone: async () => true,
  take: async () => undefined,
  async undo(context) {
    const { services } = context.host
    for (const name of LEAVING) if ((await services.state(name)) === 'running') await services.stop(name)
    await removeContainers(context)
    await context.host.network.pods.removeServicePolicies()
  },
}

/** All is tried; rejects with an AggregateError when something stays. */
export async function reset(context: SetupContext): Promise<void> {
  const { host, places } = context
  await undoSteps([...SETUP_STEPS, stopped], context, host.say)
  for (const folder of [places.logs, places.flannelFolder]) {
    await host.files.empty(folder)
    await host.files.remove(folder)
  }
}
