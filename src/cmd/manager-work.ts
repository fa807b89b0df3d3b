/** What leaders do that run controllers, each with its own credentials where that is asked for. */
import type { HealthCheck } from '#apiserver/diagnostics/health.ts'
import { createAccountTokens } from '#client/account-tokens.ts'
import { ApiClient } from '#client/api-client.ts'
import type { Controller } from '#controllers/controller.ts'
import { type ManagerOptions, runControllers } from '#controllers/manager.ts'
import { aborted } from '#lib/abort.ts'
import { sleep } from '#lib/clock.ts'
import { ProgramError } from '#lib/program.ts'
import type { ClientConfig } from '#model/kubeconfig/reading.ts'
import { userAgent } from '#model/version.ts'

import { type Component, healthy, type Server } from './component.ts'

/** Whose accounts the controllers have. */
const NAMESPACE = 'kube-system'

export interface WorkSettings {
  readonly 'kube-api-qps': number
  readonly 'kube-api-burst': number
  readonly 'use-service-account-credentials': boolean
  readonly 'controller-shutdown-timeout': number
}

export interface Work extends Pick<
  Component,
  'name' | 'clock' | 'random' | 'log' | 'readFile' | 'metrics' | 'isEnabled'
> {
  readonly settings: WorkSettings
  readonly controllers: readonly Controller[]
  /** What controllers are told, where that differs from upstream's defaults. */
  readonly told?: ManagerOptions['settings']
}

export interface Reached {
  readonly root: Server
  readonly nobody: Server
  /** PEM of what it is verified with. */
  readonly serverBundle: string
}

/** As upstream: only what the kubeconfig holds itself. */
export function bundleIn({ cluster }: ClientConfig): string {
  return Buffer.from(cluster['certificate-authority-data'] ?? '', 'base64').toString()
}

export function createWork(
  { name: program, settings, controllers, told, clock, random, log, readFile, metrics, isEnabled }: Work,
  { root: server, nobody, serverBundle }: Reached,
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
    ...(told !== undefined && { settings: told }),
    readFile,
    registry: metrics.registry,
    isEnabled,
    serverBundle,
    userAgent: userAgent(program),
    connect: (name: string) =>
      settings['use-service-account-credentials'] && accounts.has(name)
        ? { ...nobody, bearerToken: tokenOf(name), limits }
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
