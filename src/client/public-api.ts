/** Public API of `hyperkube/client`, for operators. Exports are stable. */
export type { Kind } from '#apis/kinds.ts'
export { type Clock, createVirtualClock, realClock, sleep } from '#lib/clock.ts'
export { secureRandom } from '#lib/random.ts'
export { type Requeue, WorkQueue } from '#lib/work-queue.ts'
export { type Condition, findCondition, isConditionTrue, setCondition } from '#meta/conditions.ts'
export { parseSelector, matchesLabels } from '#meta/labels.ts'
export {
  addFinalizer,
  controllerOf,
  controllerRef,
  hasFinalizer,
  isBeingDeleted,
  isControlledBy,
  type KubeList,
  type KubeObject,
  keyOf,
  type ObjectMeta,
  objectKey,
  type OwnerReference,
  removeFinalizer,
  semanticEqual,
  splitKey,
} from '#meta/object.ts'
export { parseQuantity, quantityText } from '#meta/quantity.ts'
export { isAlreadyExists, isConflict, isForbidden, isInvalid, isNotFound, StatusError } from '#meta/status.ts'
export { ApiClient, type ApiClientOptions, type Draft, type Patch, type Transport, type Wanted } from './api-client.ts'
export { type ConfigSources, inClusterConfig, programConfig, userConfig } from './connection/config.ts'
export { connect, type Connected, type ConnectOptions } from './connection/connect.ts'
export { type Connection, type ConnectionTools, openConnection } from './connection/connection.ts'
export { defineKind, type KindNames } from './custom-kind.ts'
export { discover, KindMap, type ServedKind } from './discovery.ts'
export { EventRecorder, type EventNote } from './events/event-recorder.ts'
export { follow, type Follower } from './reflector.ts'
export { type Index, Informer, type InformerOptions, type Listener } from './informer.ts'
export { Informers } from './informers.ts'
export { kubeconfigText, mergeKubeconfig, removeFromKubeconfig } from './connection/kubeconfig.ts'
export { lead, type LeaderElectionOptions, LeadershipLost } from './leader-election.ts'
export { type Operator, runOperator } from './operator.ts'
export { until, type UntilOptions, UntilTimeout } from './until.ts'
