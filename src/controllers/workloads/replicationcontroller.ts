/** ReplicationController controller: like ReplicaSet, with a map as selector. */
import { ReplicationControllers } from '#apis/core/v1.ts'
import { selectorFromLabels } from '#meta/labels.ts'
import { rule, EVENTS } from '#reconcile/controller.ts'

import { type Controller } from '../controller.ts'
import { keepReplicas } from './replica-keeper.ts'

export const replicationControllerController: Controller = keepReplicas({
  kind: ReplicationControllers,
  name: 'replicationcontroller-controller',
  aliases: ['replicationcontroller'],
  account: 'replication-controller',
  component: 'replication-controller',
  selectorOf: ({ spec }) => selectorFromLabels(spec.selector),
  reportsTerminating: false,
  rules: [
    rule('', 'replicationcontrollers', 'get list watch update'),
    rule('', 'replicationcontrollers/status replicationcontrollers/finalizers', 'update'),
    rule('', 'pods', 'create delete list patch watch'),
    EVENTS,
  ],
})
