/** Creates the parts of the management server that build clusters: routes and the controller. */
import { join } from 'node:path'

import type { Clock } from '#lib/clock.ts'
import type { Random } from '#lib/random.ts'
import type { Controller } from '#reconcile/controller.ts'

import type { ManagementSettings } from '../clusters/cluster-status.ts'
import type { ClusterSource } from '../clusters/source.ts'
import type { Route } from '../port/route.ts'
import { templateRoutes } from '../templates/routes.ts'
import { divideFile } from './build-file.ts'
import { buildRoutes, buildSource } from './build-routes.ts'
import type { BuildServices } from './context.ts'
import { createBuildController } from './controller.ts'
import type { BuildSurroundings, MachineTunnelWays } from './engine.ts'
import { operationRoutes, type OperationRoutesOptions } from './operation-routes.ts'
import { BuildRunner } from './runner.ts'

export interface Builds {
  readonly source: ClusterSource
  readonly routes: readonly Route[]
  readonly controller: Controller<ManagementSettings>
}

export interface BuildsPlan {
  readonly dataDir: string
  readonly etcdBinary: string
}

export interface BuildsOptions extends OperationRoutesOptions, Pick<BuildServices, 'serverUrl' | 'ca'> {
  /** The tools with which clusters are built. */
  readonly build: Pick<BuildSurroundings, 'env' | 'kubectl' | 'site'>
  /** Other ways to machines than SSH. */
  readonly tunnels: MachineTunnelWays
  readonly clock: Clock
  readonly random: Random
}

export function createBuilds({ dataDir, etcdBinary }: BuildsPlan, options: BuildsOptions): Builds {
  const { build, tunnels, clock, random, serverUrl, ca } = options
  const around = { ...build, tunnels, clock, random, folder: join(dataDir, 'builds'), etcdBinary }
  const builds: BuildServices = { around, runner: new BuildRunner(), serverUrl, ca }
  return {
    source: buildSource(options),
    routes: [
      ...buildRoutes({ ...options, builds }),
      ...operationRoutes(options),
      ...templateRoutes({ ...options, secretsIn: (config) => Object.keys(divideFile({ config }).secrets) }),
    ],
    controller: createBuildController(builds),
  }
}
