/** Every controller there is, by name. Which of them run is `--controllers`' choice: see selection.ts. */
import type { Controller } from './controller.ts'
import { deploymentController } from './deployment/controller.ts'
import { garbageCollectorController } from './garbage-collector/controller.ts'
import { namespaceController } from './namespace.ts'
import { replicaSetController } from './replicaset.ts'
import { replicationControllerController } from './replicationcontroller.ts'

export const CONTROLLERS: readonly Controller[] = [
  deploymentController,
  garbageCollectorController,
  namespaceController,
  replicaSetController,
  replicationControllerController,
]
