/** Groups about the API itself: aggregation, fairness, storage versions, leases, events, classes of pods and nodes. */
import type { DescriptionTable } from './table.ts'

const nominalConcurrencyShares = 'Its share of what the server can do at once, against those of the other levels.'
const lendablePercent = 'How much of it other levels may borrow.'

export const apiRegistration: DescriptionTable = {
  APIService: { '': 'Who serves a group version: this server, or another one behind a Service.' },
  APIServiceSpec: {
    '': 'Who serves what.',
    service: 'The Service of the other server. Absent: this server.',
    group: 'The group.',
    version: 'The version.',
    insecureSkipTLSVerify: 'Do not check its certificate. Do not do this.',
    caBundle: 'Certificates its own is checked against, in PEM, as base64.',
    groupPriorityMinimum: 'Groups with more come first.',
    versionPriority: 'Versions with more come first within the group.',
  },
  APIServiceStatus: { '': 'Whether it can be reached.', conditions: 'Available, or why not.' },
  ServiceReference: {
    '': 'Points to a Service.',
    namespace: 'Its namespace.',
    name: 'Its name.',
    port: 'The port. Default: 443.',
  },
}

export const apiServerInternal: DescriptionTable = {
  StorageVersion: { '': 'In which version the API servers of a cluster store the objects of one resource.' },
  StorageVersionSpec: { '': 'Nothing: only the status says anything.' },
  StorageVersionStatus: {
    '': 'What the servers say.',
    storageVersions: 'One entry for each server.',
    commonEncodingVersion: 'The version all of them write, if they agree.',
    conditions: 'Whether they agree.',
  },
  ServerStorageVersion: {
    '': 'What one server says.',
    apiServerID: 'The server.',
    encodingVersion: 'The version it writes.',
    decodableVersions: 'The versions it can read.',
    servedVersions: 'The versions it serves.',
  },
}

export const flowControl: DescriptionTable = {
  FlowSchema: { '': 'Sorts requests into flows of a priority level, so that nobody starves the others.' },
  FlowSchemaSpec: {
    '': 'Which requests, and of which level.',
    priorityLevelConfiguration: 'The level.',
    matchingPrecedence: 'Schemas with less are tried first; from 1 to 10000.',
    distinguisherMethod: 'What makes a flow of its own: each user or each namespace. Absent: all is one flow.',
    rules: 'The requests; it is enough that one of them fits.',
  },
  FlowSchemaStatus: { '': 'How a schema fares.', conditions: 'Dangling: there is no such level.' },
  PolicyRulesWithSubjects: {
    '': 'Requests of somebody.',
    subjects: 'Of whom.',
    resourceRules: 'About resources.',
    nonResourceRules: 'About other paths.',
  },
  Subject: {
    '': 'Somebody.',
    kind: 'User, Group or ServiceAccount; the member of that name is set.',
    user: 'A user.',
    group: 'A group.',
    serviceAccount: 'A ServiceAccount.',
  },
  UserSubject: { '': 'Which user.', name: 'The name; * for all.' },
  GroupSubject: { '': 'Which group.', name: 'The name; * for all.' },
  ServiceAccountSubject: { '': 'Which ServiceAccount.', namespace: 'Its namespace.', name: 'Its name; * for all.' },
  ResourcePolicyRule: {
    '': 'Requests about resources.',
    verbs: 'What is to be done; * for anything.',
    apiGroups: 'With resources of these groups; * for all.',
    resources: 'With these resources; * for all.',
    clusterScope: 'Also those that have no namespace.',
    namespaces: 'In these namespaces; * for all.',
  },
  NonResourcePolicyRule: {
    '': 'Requests about other paths.',
    verbs: 'What is to be done; * for anything.',
    nonResourceURLs: 'With these paths; * at the end for all below.',
  },
  FlowDistinguisherMethod: { '': 'What makes a flow of its own.', type: 'ByUser or ByNamespace.' },
  PriorityLevelConfigurationReference: { '': 'Points to a level.', name: 'Its name.' },
  PriorityLevelConfiguration: { '': 'How much of the server some requests may take, and what becomes of more.' },
  PriorityLevelConfigurationSpec: {
    '': 'The limits of a level.',
    type: 'Limited, or Exempt: such requests never wait.',
    limited: 'For Limited.',
    exempt: 'For Exempt.',
  },
  PriorityLevelConfigurationStatus: { '': 'How a level fares.' },
  LimitedPriorityLevelConfiguration: {
    '': 'The limits of a level.',
    nominalConcurrencyShares,
    limitResponse: 'What becomes of requests beyond it.',
    lendablePercent,
    borrowingLimitPercent: 'How much it may borrow from others. Absent: as much as there is.',
  },
  ExemptPriorityLevelConfiguration: {
    '': 'What a level without limits sets aside.',
    nominalConcurrencyShares,
    lendablePercent,
  },
  LimitResponse: {
    '': 'What becomes of requests beyond the limit.',
    type: 'Queue or Reject.',
    queuing: 'How they wait, for Queue.',
  },
  QueuingConfiguration: {
    '': 'How requests wait.',
    queues: 'How many queues there are. Default: 64.',
    handSize: 'Among how many of them a flow chooses. Default: 8.',
    queueLengthLimit: 'How many requests may wait in one. Default: 50.',
  },
}

export const coordination: DescriptionTable = {
  Lease: { '': 'Who leads, or that a node is alive, until when.' },
  LeaseSpec: {
    '': 'Who has it, since when, for how long.',
    holderIdentity: 'Who has it.',
    leaseDurationSeconds: 'How long others must wait after the last renewal.',
    acquireTime: 'Since when.',
    renewTime: 'When it was last renewed.',
    leaseTransitions: 'How often it went to somebody else.',
    strategy: 'How the next holder is chosen, when somebody chooses.',
    preferredHolder: 'Who should have it; the present holder gives it up.',
  },
  LeaseCandidate: { '': 'Somebody who would hold a Lease, and what speaks for them.' },
  LeaseCandidateSpec: {
    '': 'What speaks for a candidate.',
    leaseName: 'The Lease. Cannot be changed.',
    pingTime: 'When they were last asked whether they are still there.',
    renewTime: 'When they last answered.',
    binaryVersion: 'The version of their program.',
    emulationVersion: 'The version it behaves like.',
    strategy: 'How they think the holder should be chosen.',
  },
}

export const events: DescriptionTable = {
  Event: {
    '': 'Something that happened to an object, for people. Events go by themselves after a while.',
    eventTime: 'When it was first seen.',
    series: 'How it went on, when it did.',
    reportingController: 'Which program says so.',
    reportingInstance: 'Which instance of it.',
    action: 'What was done about it.',
    reason: 'What, as one word.',
    regarding: 'To what it happened.',
    related: 'What else has to do with it.',
    note: 'What, as a sentence.',
    type: 'Normal or Warning.',
    deprecatedSource: 'Who says so, as older events put it.',
    deprecatedFirstTimestamp: 'When it happened first, as older events put it.',
    deprecatedLastTimestamp: 'When it happened last, as older events put it.',
    deprecatedCount: 'How often, as older events put it.',
  },
  EventSeries: {
    '': 'Something that happens again and again.',
    count: 'How often so far.',
    lastObservedTime: 'When last.',
  },
}

export const policy: DescriptionTable = {
  PodDisruptionBudget: { '': 'How many pods of a set may be ended on purpose at the same time.' },
  PodDisruptionBudgetSpec: {
    '': 'Which pods, and how many must stay. One of the two numbers is set.',
    selector: 'The pods. Empty: all of the namespace.',
    minAvailable: 'How many must stay, as a number or a percentage.',
    maxUnavailable: 'How many may be missing, as a number or a percentage.',
    unhealthyPodEvictionPolicy: 'When pods that are not ready may go: IfHealthyBudget (the default) or AlwaysAllow.',
  },
  PodDisruptionBudgetStatus: {
    '': 'How many may go now.',
    disruptionsAllowed: 'So many.',
    currentHealthy: 'How many are ready.',
    desiredHealthy: 'How many must be.',
    expectedPods: 'How many there are to be.',
    disruptedPods: 'Pods that are about to go, by name.',
  },
  Eviction: { '': 'Asks to end a pod as far as its budget allows.', deleteOptions: 'How to delete it.' },
}

export const node: DescriptionTable = {
  RuntimeClass: {
    '': 'A way to run containers that pods can ask for by name.',
    handler: 'What the container runtime calls it. Cannot be changed.',
    overhead: 'What running a pod this way costs besides its containers.',
    scheduling: 'On which nodes it is there.',
  },
  Overhead: { '': 'What running a pod costs.', podFixed: 'So much of each resource.' },
  Scheduling: {
    '': 'On which nodes a RuntimeClass is there.',
    nodeSelector: 'Labels of the nodes; pods get them too.',
    tolerations: 'Taints of the nodes; pods tolerate them too.',
  },
}

const priorityClassName = 'How important the group is, by the name of a PriorityClass.'
const priority = 'How important the group is, as a number.'
const schedulingPolicy = 'How its pods are placed: each by itself or together.'
const schedulingConstraints = 'Where its pods may go together.'
const disruptionMode = 'Whether its pods are ended one by one (Pod) or all together (PodGroup).'
const resourceClaims = 'Devices that its pods share. At most 4.'

export const scheduling: DescriptionTable = {
  PriorityClass: {
    '': 'A name for how important pods are.',
    value: 'How important; more is more. Cannot be changed.',
    globalDefault: 'Whether pods that name no class are of this one.',
    description: 'For people: when to use it.',
    preemptionPolicy:
      'Whether less important pods may be ended to make room: PreemptLowerPriority (the default) or Never.',
  },
  Workload: { '': 'The sorts of pod groups that something consists of.' },
  WorkloadSpec: {
    '': 'The groups of a workload. Cannot be changed.',
    controllerRef: 'What the workload belongs to, such as a Job.',
    podGroupTemplates: 'The groups, as templates. At most 8.',
  },
  PodGroupTemplate: {
    '': 'What a pod group made from this shall look like.',
    name: 'Names it in the workload.',
    schedulingPolicy,
    schedulingConstraints,
    resourceClaims,
    disruptionMode,
    priorityClassName,
    priority,
  },
  PodGroup: { '': 'Pods that are placed together, or not at all.' },
  PodGroupSpec: {
    '': 'How the group is placed. Cannot be changed.',
    podGroupTemplateRef: 'The template it was made from.',
    schedulingPolicy,
    schedulingConstraints,
    resourceClaims,
    disruptionMode,
    priorityClassName,
    priority,
  },
  PodGroupStatus: {
    '': 'How a group fares.',
    conditions: 'PodGroupScheduled, and DisruptionTarget when it is about to be ended.',
    resourceClaimStatuses: 'Which claims were made for it.',
  },
  PodGroupSchedulingPolicy: {
    '': 'How pods of a group are placed. One of the two is set.',
    basic: 'Each by itself.',
    gang: 'Together.',
  },
  BasicSchedulingPolicy: { '': 'Each pod is placed by itself.' },
  GangSchedulingPolicy: {
    '': 'Pods are placed together.',
    minCount: 'Only when so many of them fit at the same time.',
  },
  PodGroupSchedulingConstraints: {
    '': 'Where pods of a group may go together.',
    topology: 'All into the same part of the cluster.',
  },
  TopologyConstraint: {
    '': 'What counts as a part of the cluster.',
    key: 'A label of nodes; nodes with the same value are one part.',
  },
  PodGroupResourceClaim: {
    '': 'A claim on devices that the pods share. One of the two names is given.',
    name: 'What the pods call it.',
    resourceClaimName: 'An existing ResourceClaim.',
    resourceClaimTemplateName: 'A template from which one is made for the group.',
  },
  PodGroupResourceClaimStatus: {
    '': 'Which claim was made.',
    name: 'For which entry.',
    resourceClaimName: 'The ResourceClaim.',
  },
  PodGroupTemplateReference: { '': 'Points to a template.', workload: 'One of a Workload.' },
  WorkloadPodGroupTemplateReference: {
    '': 'A template of a Workload.',
    workloadName: 'The Workload.',
    podGroupTemplateName: 'The template in it.',
  },
  TypedLocalObjectReference: {
    '': 'Points to an object in the same namespace.',
    apiGroup: 'The group of its kind; empty for the core group.',
    kind: 'Its kind.',
    name: 'Its name.',
  },
}
