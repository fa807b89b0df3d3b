/** resource: devices that pods can claim. */
import type { DescriptionTable } from './table.ts'

const selectors = 'Which devices fit; all of them must agree.'
const allocationMode = 'ExactCount (the default), or All that fit.'
const count = 'How many, for ExactCount. Default: 1.'
const adminAccess = 'Look at devices without taking them, also those in use. Only in namespaces for administrators.'
const tolerations = 'Taints of devices that are put up with.'
const capacity = 'How much of each capacity, for devices that can be shared.'
const deviceClassName = 'The DeviceClass.'
const driver = 'The driver.'
const pool = 'The pool.'
const device = 'The device.'
const bindingConditions = 'Conditions that must come true before the pod is bound.'
const bindingFailureConditions = 'Conditions that mean it will not work; then others are sought.'
const shareID = 'Which share of the device, when it is shared.'
const nodeName = 'Only from this node.'
const nodeSelector = 'Only from these nodes.'
const allNodes = 'From every node.'
const deviceFields = {
  attributes: 'What it is, by name.',
  capacity: 'How much it has, by name.',
  consumesCounters: 'What it takes from counters that devices share.',
  nodeName,
  nodeSelector,
  allNodes,
  taints: 'Keep claims away that do not tolerate them.',
  bindsToNode: 'Whether a claim that gets it is tied to the node.',
  bindingConditions,
  bindingFailureConditions,
  allowMultipleAllocations: 'Whether several claims can share it.',
  nodeAllocatableResourceMappings: 'What it takes from the resources of the node.',
}

export const resource: DescriptionTable = {
  ResourceClaim: { '': 'Asks for devices, and says which ones were found.' },
  ResourceClaimSpec: { '': 'Which devices are wanted. Cannot be changed.', devices: 'The devices.' },
  ResourceClaimStatus: {
    '': 'Which devices were found, and for whom.',
    allocation: 'The devices. Absent: none yet.',
    reservedFor: 'Who may use them now. At most 256.',
    devices: 'How the devices fare, as their drivers say.',
  },
  ResourceClaimTemplate: { '': 'From which a claim is made for each pod that asks for one.' },
  ResourceClaimTemplateSpec: { '': 'What the claims look like. Cannot be changed.', spec: 'What the claims ask for.' },
  DeviceClaim: {
    '': 'Which devices are wanted.',
    requests: 'The devices, request by request.',
    constraints: 'What must hold between the devices of several requests.',
    config: 'Settings for the drivers.',
  },
  DeviceRequest: {
    '': 'A request for devices.',
    name: 'Names it in the claim.',
    exactly: 'One sort of devices.',
    firstAvailable: 'Or several sorts, of which the first that can be had is taken.',
    deviceClassName,
    selectors,
    allocationMode,
    count,
    adminAccess,
    tolerations,
    capacity,
  },
  ExactDeviceRequest: {
    '': 'A request for one sort of devices.',
    deviceClassName,
    selectors,
    allocationMode,
    count,
    adminAccess,
    tolerations,
    capacity,
  },
  DeviceSubRequest: {
    '': 'One of several sorts.',
    name: 'Names it in the request.',
    deviceClassName,
    selectors,
    allocationMode,
    count,
    tolerations,
    capacity,
  },
  CapacityRequirements: { '': 'How much of each capacity.', requests: 'So much, by name.' },
  DeviceSelector: { '': 'Which devices fit.', cel: 'By an expression.' },
  CELDeviceSelector: { '': 'Which devices fit.', expression: 'The expression, in CEL; device is the device.' },
  DeviceConstraint: {
    '': 'What must hold between devices.',
    requests: 'Of these requests. Empty: of all.',
    matchAttribute: 'This attribute must be the same.',
    distinctAttribute: 'This attribute must differ.',
  },
  DeviceClaimConfiguration: {
    '': 'Settings for a driver.',
    requests: 'For these requests. Empty: for all.',
    opaque: 'The settings.',
  },
  DeviceConfiguration: { '': 'Settings for a driver.', opaque: 'The settings.' },
  OpaqueDeviceConfiguration: { '': 'Settings that only the driver understands.', driver, parameters: 'The settings.' },
  AllocationResult: {
    '': 'The devices that were found.',
    devices: 'The devices.',
    nodeSelector: 'From which nodes they can be used. Absent: from all.',
    allocationTimestamp: 'When they were found.',
  },
  DeviceAllocationResult: {
    '': 'The devices that were found.',
    results: 'One entry for each.',
    config: 'Settings, of the claim and of the classes.',
  },
  DeviceRequestAllocationResult: {
    '': 'A device that was found.',
    request: 'For which request.',
    driver,
    pool,
    device,
    adminAccess: 'Whether it is only looked at.',
    tolerations,
    bindingConditions,
    bindingFailureConditions,
    shareID,
    consumedCapacity: 'How much of each capacity it takes.',
  },
  DeviceAllocationConfiguration: {
    '': 'Settings for a driver.',
    source: 'FromClass or FromClaim.',
    requests: 'For these requests. Empty: for all.',
    opaque: 'The settings.',
  },
  ResourceClaimConsumerReference: {
    '': 'Who uses a claim.',
    apiGroup: 'The group of the resource; empty for the core group.',
    resource: 'The resource, such as pods.',
    name: 'The name.',
    uid: 'The uid.',
  },
  AllocatedDeviceStatus: {
    '': 'How a device fares.',
    driver,
    pool,
    device,
    shareID,
    data: 'What the driver wants to say.',
    networkData: 'For network devices.',
  },
  NetworkDeviceData: {
    '': 'A network device.',
    interfaceName: 'The interface in the pod.',
    ips: 'Its addresses, with the length of their prefix.',
    hardwareAddress: 'Its hardware address.',
  },
  DeviceClass: { '': 'A sort of devices that claims ask for by name.' },
  DeviceClassSpec: {
    '': 'Which devices, and how they are set up.',
    selectors,
    config: 'Settings for the drivers.',
    extendedResourceName: 'Pods that ask for this resource get such a device.',
  },
  DeviceClassConfiguration: { '': 'Settings for a driver.', opaque: 'The settings.' },
  ResourceSlice: { '': "A part of a driver's pool of devices." },
  ResourceSliceSpec: {
    '': 'Devices, and from which nodes they can be used. Exactly one member says from where.',
    driver: 'The driver. Cannot be changed.',
    pool: 'The pool they belong to.',
    nodeName: `${nodeName} Cannot be changed.`,
    nodeSelector,
    allNodes,
    perDeviceNodeSelection: 'Each device says so itself.',
    devices: 'The devices, at most 128.',
    sharedCounters: 'Counters that devices take from.',
  },
  ResourcePool: {
    '': 'The pool a slice belongs to.',
    name: 'Its name.',
    generation: 'Grows with every change; only slices of the newest count.',
    resourceSliceCount: 'Of how many slices it consists.',
  },
  Device: { '': 'A device.', name: 'Names it in the pool.', basic: 'Everything else about it.', ...deviceFields },
  BasicDevice: { '': 'What a device is.', ...deviceFields },
  DeviceAttribute: {
    '': 'An attribute of a device. Exactly one member is set.',
    int: 'A number.',
    bool: 'True or false.',
    string: 'A text.',
    version: 'A semantic version.',
    ints: 'Numbers.',
    bools: 'Truths.',
    strings: 'Texts.',
    versions: 'Semantic versions.',
  },
  DeviceCapacity: {
    '': 'How much of something a device has.',
    value: 'How much.',
    requestPolicy: 'In which portions it can be had.',
  },
  CapacityRequestPolicy: {
    '': 'In which portions a capacity can be had.',
    default: 'How much, where a request does not say.',
    validValues: 'Only so much.',
    validRange: 'Or anything in a range.',
  },
  CapacityRequestPolicyRange: { '': 'A range of portions.', min: 'At least.', max: 'At most.', step: 'In steps of.' },
  CounterSet: {
    '': 'Counters that devices share.',
    name: 'Names the set in the pool.',
    counters: 'The counters, by name.',
  },
  Counter: { '': 'A counter.', value: 'How much there is of it, or is taken.' },
  DeviceCounterConsumption: {
    '': 'What a device takes from counters.',
    counterSet: 'From which set.',
    counters: 'How much, by name.',
  },
  NodeAllocatableResourceMapping: {
    '': 'What a device takes from a resource of the node.',
    capacityKey: 'As much as it has of this capacity.',
    allocationMultiplier: 'So many times; or so much for each device.',
  },
  DeviceTaint: {
    '': 'Keeps claims that do not tolerate it away from a device.',
    key: 'Its key.',
    value: 'Its value.',
    effect: 'NoSchedule, NoExecute, which also ends pods that use it, or None.',
    timeAdded: 'When it was added.',
  },
  DeviceToleration: {
    '': 'Taints that do not keep a claim away.',
    key: 'The key of the taint; empty with Exists fits all.',
    operator: 'Equal (the default) or Exists.',
    value: 'The value of the taint.',
    effect: 'The effect; empty fits all.',
    tolerationSeconds: 'With NoExecute, for how long. Absent: for ever.',
  },
  DeviceTaintRule: { '': 'A taint that an administrator puts on devices.' },
  DeviceTaintRuleSpec: {
    '': 'Which devices, which taint.',
    deviceSelector: 'The devices. Absent: all.',
    taint: 'The taint.',
  },
  DeviceTaintRuleStatus: {
    '': 'How a rule fares.',
    conditions: 'EvictionInProgress: pods are being ended because of it.',
  },
  DeviceTaintSelector: { '': 'Some devices. Everything given must fit.', driver, pool, device },
  ResourcePoolStatusRequest: { '': 'Asks once how many devices are free; the status is the answer.' },
  ResourcePoolStatusRequestSpec: {
    '': 'The question. Cannot be changed.',
    driver,
    poolName: 'One pool. Absent: all of the driver.',
    limit: 'At most so many pools. Default: 100.',
  },
  ResourcePoolStatusRequestStatus: {
    '': 'The answer. Written once.',
    poolCount: 'How many pools there are.',
    pools: 'The pools, as far as the limit goes.',
    conditions: 'Complete or Failed.',
  },
  PoolStatus: {
    '': 'How many devices a pool has.',
    driver,
    poolName: 'The pool.',
    generation: 'The generation this is about.',
    resourceSliceCount: 'Of how many slices it consists.',
    totalDevices: 'How many devices there are.',
    allocatedDevices: 'How many are taken.',
    availableDevices: 'How many are free.',
    unavailableDevices: 'How many can not be had for other reasons.',
    nodeName: 'The node they are on, when it is one.',
    validationError: 'Why there are no numbers.',
  },
}
