/** apps: controllers that keep pods running. */
import type { DescriptionTable } from './table.ts'

const minReadySeconds = 'How long a pod must be ready before it counts as available. Default: 0.'
const revisionHistoryLimit = 'How many old revisions are kept to go back to. Default: 10.'
const collisionCount = 'How often a name was taken already; part of the next name.'
const selector = 'Labels of its pods. Must match the labels of the template. Cannot be changed.'
const template = 'What the pods look like.'
const readyReplicas = 'Those that are ready.'
const availableReplicas = 'Those that have been ready for long enough.'
const terminatingReplicas = 'Those that are ending.'

export const apps: DescriptionTable = {
  Deployment: { '': 'Keeps a number of equal pods running and replaces them step by step when they change.' },
  DeploymentSpec: {
    '': 'Which pods, how many, and how they are replaced.',
    replicas: 'How many. Default: 1.',
    selector,
    template: 'What the pods look like. A change of it is rolled out.',
    strategy: 'How old pods are replaced by new ones.',
    minReadySeconds,
    revisionHistoryLimit,
    paused: 'Roll nothing out for now.',
    progressDeadlineSeconds: 'After how long without progress a rollout counts as failed. Default: 600.',
  },
  DeploymentStrategy: {
    '': 'A way to get from old pods to new ones.',
    type: 'RollingUpdate, a few at a time (the default), or Recreate, all old ones first.',
    rollingUpdate: 'How many at a time. For RollingUpdate only.',
  },
  RollingUpdateDeployment: {
    '': 'How many pods are replaced at a time. Not both can be 0.',
    maxUnavailable: 'How many may be missing meanwhile, as a number or a percentage. Default: 25%.',
    maxSurge: 'How many there may be too many meanwhile, as a number or a percentage. Default: 25%.',
  },
  DeploymentStatus: {
    '': 'How far a Deployment has come.',
    replicas: 'All of its pods that do not end.',
    updatedReplicas: 'Those made from the present template.',
    readyReplicas,
    availableReplicas,
    unavailableReplicas: 'How many are still missing.',
    terminatingReplicas,
    collisionCount,
  },
  ReplicaSet: { '': 'Keeps a number of equal pods running. Mostly made and scaled by a Deployment.' },
  ReplicaSetSpec: {
    '': 'Which pods, and how many.',
    replicas: 'How many. Default: 1.',
    minReadySeconds,
    selector,
    template,
  },
  ReplicaSetStatus: {
    '': 'How many pods there are.',
    replicas: 'All that do not end.',
    fullyLabeledReplicas: 'Those with all labels of the template.',
    readyReplicas,
    availableReplicas,
    terminatingReplicas,
  },
  StatefulSet: { '': 'Keeps pods running that are not equal: each has a number, a name and storage that stay.' },
  StatefulSetSpec: {
    '': 'Which pods, how many, and in which order.',
    replicas: 'How many. Default: 1.',
    selector,
    template,
    volumeClaimTemplates: 'Claims that each pod gets for itself and finds again after a restart.',
    serviceName: 'The headless Service that gives the pods their names in DNS.',
    podManagementPolicy: 'OrderedReady, one after the other (the default), or Parallel.',
    updateStrategy: 'How pods are replaced when the template changes.',
    revisionHistoryLimit,
    minReadySeconds,
    persistentVolumeClaimRetentionPolicy: 'What becomes of the claims. Default: they are kept.',
    ordinals: 'Which numbers the pods get.',
  },
  StatefulSetUpdateStrategy: {
    '': 'How pods of a StatefulSet are replaced.',
    type: 'RollingUpdate, from the highest number down (the default), or OnDelete, when somebody deletes them.',
    rollingUpdate: 'For RollingUpdate only.',
  },
  RollingUpdateStatefulSetStrategy: {
    '': 'How far and how fast pods are replaced.',
    partition: 'Only pods from this number on. Default: 0, all.',
    maxUnavailable: 'How many may be missing meanwhile, as a number or a percentage. Default: 1.',
  },
  StatefulSetPersistentVolumeClaimRetentionPolicy: {
    '': 'What becomes of claims that are not needed: Retain or Delete.',
    whenDeleted: 'When the StatefulSet is deleted.',
    whenScaled: 'When there are to be fewer pods.',
  },
  StatefulSetOrdinals: { '': 'The numbers of the pods.', start: 'The first. Default: 0.' },
  StatefulSetStatus: {
    '': 'How far a StatefulSet has come.',
    replicas: 'All of its pods.',
    readyReplicas,
    availableReplicas,
    currentReplicas: 'Those of the current revision.',
    updatedReplicas: 'Those of the revision that is rolled out.',
    currentRevision: 'The revision that was there before the rollout.',
    updateRevision: 'The revision that is rolled out.',
    collisionCount,
  },
  DaemonSet: { '': 'Keeps one pod running on every node, or on every node of some sort.' },
  DaemonSetSpec: {
    '': 'Which pods; the template says on which nodes.',
    selector,
    template,
    updateStrategy: 'How pods are replaced when the template changes.',
    minReadySeconds,
    revisionHistoryLimit,
  },
  DaemonSetUpdateStrategy: {
    '': 'How pods of a DaemonSet are replaced.',
    type: 'RollingUpdate (the default), or OnDelete, when somebody deletes them.',
    rollingUpdate: 'For RollingUpdate only.',
  },
  RollingUpdateDaemonSet: {
    '': 'On how many nodes pods are replaced at a time. Exactly one of the two is above 0.',
    maxUnavailable: 'On how many nodes the pod may be missing meanwhile. Default: 1.',
    maxSurge: 'On how many nodes the new pod may start before the old one ends. Default: 0.',
  },
  DaemonSetStatus: {
    '': 'On how many nodes the pod runs.',
    desiredNumberScheduled: 'On how many it should.',
    currentNumberScheduled: 'On how many of these it is.',
    numberMisscheduled: 'On how many it is though it should not.',
    numberReady: 'On how many it is ready.',
    numberAvailable: 'On how many it has been ready for long enough.',
    numberUnavailable: 'On how many it is still missing.',
    updatedNumberScheduled: 'On how many it is made from the present template.',
    collisionCount,
  },
  ControllerRevision: {
    '': 'A template as it was once, for StatefulSets and DaemonSets to go back to.',
    data: 'The template. Cannot be changed.',
    revision: 'Its number.',
  },
}
