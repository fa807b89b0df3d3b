/** Checks the preconditions of a set-up and reports all failures at once, each with its solution. */
import { CrashError } from '../../outcome.ts'
import { management, type SetupContext } from './context.ts'
import { faultsOf, usesDocker } from './settings.ts'

/** Throws CrashError. */
export async function checkPreconditions(context: SetupContext): Promise<void> {
  const faults = [...faultsOf(context.settings), ...(await machineFaults(context))]
  if (faults.length > 0) throw new CrashError(faults.join('; '))
}

async function machineFaults(context: SetupContext): Promise<string[]> {
  const { host, settings, paths } = context
  if (!(await host.isElevated())) return ['This command needs an administrator: run it from an elevated prompt']
  const service = usesDocker(settings) ? 'docker' : 'containerd'
  const state = await host.services.state(service)
  const hasBase = await host.files.exists(settings.baseDir)
  return [
    ...(hasBase
      ? []
      : [`${settings.baseDir} does not exist: create it, and put the kubeconfig of an administrator into it`]),
    ...(!hasBase || (await host.files.exists(paths.kubeconfig))
      ? []
      : [
          `${paths.kubeconfig} does not exist: put the kubeconfig of an administrator there, and delete it after the set-up`,
        ]),
    ...(state === undefined
      ? [`There is no service ${service}: install it; Kubernetes ${settings.release} needs it`]
      : []),
    ...(state === 'stopped' ? [`The service ${service} is not running: Start-Service ${service}`] : []),
    ...(await management(context).then(
      () => [],
      (error: Error) => [error.message],
    )),
  ]
}
