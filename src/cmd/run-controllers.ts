/** Runs the controllers of a leader, each with its own credentials if configured. */
import { createAccountTokens } from '#client/account-tokens.ts'
import { ApiClient } from '#client/api-client.ts'
import { type Component, healthy, type Server } from '#component/component.ts'
import type { HealthCheck } from '#component/pages/health.ts'
import type { Controller } from '#controllers/controller.ts'
import { type ManagerOptions, runControllers } from '#controllers/manager.ts'
import { aborted } from '#lib/abort.ts'
import { sleep } from '#lib/clock.ts'
import { ProgramError } from '#lib/program.ts'
import type { ClientConfig } from '#model/kubeconfig/reading.ts'
import { userAgent } from '#model/version.ts'

/** The namespace of the controllers' service accounts. */
const NAMESPACE = 'kube-system'

export interface ControllerRunSettings {
  readonly 'kube-api-qps': number
  readonly 'kube-api-burst': number
  readonly 'use-service-account-credentials': boolean
  readonly 'controller-shutdown-timeout': number
}

export interface ControllerRun extends Pick<
  Component,
  'name' | 'clock' | 'random' | 'log' | 'readFile' | 'metrics' | 'isEnabled'
> {
  readonly settings: ControllerRunSettings
  readonly controllers: readonly Controller[]
  /** Settings of controllers that differ from upstream's defaults. */
  readonly controllerSettings?: ManagerOptions['settings']
}

export interface ServerConnection {
  readonly root: Server
  readonly anonymous: Server
  /** PEM of the authority that verifies the server. */
  readonly serverBundle: string
}

/** Like upstream, only data inside the kubeconfig, not files. */
export function bundleIn({ cluster }: ClientConfig): string {
  return Buffer.from(cluster['certificate-authority-data'] ?? '', 'base64').toString()
}

export function createControllerRun(
  {
    name: program,
    settings,
    controllers,
    controllerSettings,
    clock,
    random,
    log,
    readFile,
    metrics,
    isEnabled,
  }: ControllerRun,
  { root: server, anonymous, serverBundle }: ServerConnection,
  running: HealthCheck[],
): (signal: AbortSignal) => Promise<void> {
  const limits = { qps: settings['kube-api-qps'], burst: settings['kube-api-burst'] }
  const root = new ApiClient({ ...server, clock, userAgent: userAgent(program), limits })
  const tokenOf = createAccountTokens(root, NAMESPACE)
  const own = controllers.filter(({ actsAsManager }) => actsAsManager !== true)
  const accounts = new Set(own.map(({ account, name }) => account ?? name))
  const options: ManagerOptions = {
    controllers,
    clock,
    random,
    log,
    ...(controllerSettings !== undefined && { settings: controllerSettings }),
    readFile,
    registry: metrics.registry,
    isEnabled,
    serverBundle,
    userAgent: userAgent(program),
    connect: (name: string) =>
      settings['use-service-account-credentials'] && accounts.has(name)
        ? { ...anonymous, bearerToken: tokenOf(name), limits }
        : { ...server, limits },
  }
  return async (signal) => {
    running.push(...controllers.map(({ name }) => healthy(name)))
    const done = runControllers(options, signal).catch((cause: unknown) => {
      log.error(cause, 'Error building controllers')
      throw new ProgramError((cause as Error).message, { cause })
    })
    await Promise.race([done, aborted(signal).then(() => sleep(clock, settings['controller-shutdown-timeout']))])
    running.length = 0
  }
}
