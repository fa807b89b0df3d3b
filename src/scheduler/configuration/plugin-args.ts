/** The arguments of scheduler plugins: fields, defaults and validation. */
import type { NodeAffinity, NodeSelectorTerm, TopologySpreadConstraint } from '#apis/core/v1.ts'
import { structFor } from '#apis/schemas.ts'
import { durationMs } from '#lib/go/duration.ts'
import { type ConfigKind, defineConfig } from '#meta/config-kind.ts'
import type { Complete, Given } from '#meta/config-rows.ts'
import { type LabelOperator, requirementErrors } from '#meta/labels.ts'
import { collectErrors, type FieldError, type FieldPath, verbatim } from '#meta/validation/field-path.ts'
import { validateLabelName } from '#meta/validation/rules.ts'

import type { ResourceWeight, ShapePoint } from '../framework/resource-scores.ts'

export const GROUP_VERSION = 'kubescheduler.config.k8s.io/v1'

export type IsEnabled = (gate: string) => boolean

export interface PluginArgs {
  readonly kind: ConfigKind
  /** The field names in display order. */
  readonly fields: readonly string[]
  /** The arguments of a profile that sets none. */
  readonly withDefaults: (given: object, isEnabled: IsEnabled) => object
  readonly errors: (path: FieldPath, args: never, isEnabled: IsEnabled) => FieldError[]
  /** As upstream: validated only when the plugin is created. */
  readonly isValidatedLate?: boolean
}

const STRUCTS = {
  'v1.DefaultPreemptionArgs': { minCandidateNodesPercentage: '*int32 =10', minCandidateNodesAbsolute: '*int32 =100' },
  'v1.DynamicResourcesArgs': { filterTimeout: '*v1.Duration =10s', bindingTimeout: '*v1.Duration =10m0s' },
  'v1.InterPodAffinityArgs': { hardPodAffinityWeight: '*int32 =1', ignorePreferredTermsOfExistingPods: 'bool =false' },
  'v1.NodeAffinityArgs': { addedAffinity: '*v1.NodeAffinity' },
  'v1.NodeResourcesBalancedAllocationArgs': { resources: '[]v1.ResourceSpec' },
  'v1.NodeResourcesFitArgs': {
    ignoredResources: '[]string',
    ignoredResourceGroups: '[]string',
    scoringStrategy: '*v1.ScoringStrategy',
  },
  'v1.PodTopologySpreadArgs': {
    defaultConstraints: '[]v1.TopologySpreadConstraint',
    defaultingType: 'string =System',
  },
  'v1.VolumeBindingArgs': { bindTimeoutSeconds: '*int64 =600', shape: '[]v1.UtilizationShapePoint' },
  'v1.ScoringStrategy': {
    type: 'string',
    resources: '[]v1.ResourceSpec',
    requestedToCapacityRatio: '*v1.RequestedToCapacityRatioParam',
  },
  'v1.RequestedToCapacityRatioParam': { shape: '[]v1.UtilizationShapePoint' },
  'v1.UtilizationShapePoint': { utilization: 'int32', score: 'int32' },
  'v1.ResourceSpec': { name: 'string =', weight: 'int64 =1' },
} as const

type Structs = typeof STRUCTS
type Name = keyof Structs extends infer N ? (N extends `v1.${infer Plugin}Args` ? Plugin : never) : never
/** The arguments of a plugin with the defaults of their rows. */
type ArgsOf<N extends Name> = Complete<Structs, `v1.${N}Args`>
type Shape = readonly Given<Structs, 'v1.UtilizationShapePoint'>[]
type Resources = readonly ResourceWeight[]

const EXTERNAL = {
  'v1.NodeAffinity': structFor('core.v1', 'NodeAffinity'),
  'v1.TopologySpreadConstraint': structFor('core.v1', 'TopologySpreadConstraint'),
}

interface ArgsRules<A> {
  /** Defaults other than those of rows. */
  readonly defaults?: (args: A, isEnabled: IsEnabled) => object
  readonly errors: (path: FieldPath, args: A, isEnabled: IsEnabled) => FieldError[]
  readonly isValidatedLate?: boolean
}

function defineArgs<N extends Name>(plugin: N, rules: ArgsRules<ArgsOf<N>>): [string, PluginArgs] {
  const { defaults = () => ({}), errors, isValidatedLate = false } = rules
  const goType = `v1.${plugin}Args` as const
  const kind = defineConfig([`${plugin}Args`, goType], [GROUP_VERSION], STRUCTS, EXTERNAL)
  const withDefaults = (given: object, isEnabled: IsEnabled): object => {
    const filled = kind.withDefaults(given)
    return { ...filled, ...defaults(filled, isEnabled) }
  }
  return [plugin, { kind, fields: Object.keys(STRUCTS[goType]), withDefaults, errors, isValidatedLate }]
}

const CPU_AND_MEMORY: Resources = [
  { name: 'cpu', weight: 1 },
  { name: 'memory', weight: 1 },
]

function weighted(resources: Resources = []): Resources {
  return resources.length === 0 ? CPU_AND_MEMORY : resources
}

export const ARGS: ReadonlyMap<string, PluginArgs> = new Map([
  defineArgs('DefaultPreemption', { errors: preemptionErrors }),
  defineArgs('DynamicResources', {
    errors: (path, { filterTimeout, bindingTimeout }) => [
      ...(durationMs(filterTimeout) < 0
        ? [path.child('filterTimeout').invalid(filterTimeout, 'must be zero or positive')]
        : []),
      ...(durationMs(bindingTimeout) < 1000
        ? [path.child('bindingTimeout').invalid(bindingTimeout, 'must be at least 1 second')]
        : []),
    ],
  }),
  defineArgs('InterPodAffinity', {
    errors: (path, { hardPodAffinityWeight: weight }) =>
      weight < 0 || weight > 100
        ? [path.child('hardPodAffinityWeight').invalid(weight, 'not in valid range [0, 100]')]
        : [],
  }),
  defineArgs('NodeAffinity', {
    errors: (path, { addedAffinity }) => affinityErrors(path.child('addedAffinity'), addedAffinity as NodeAffinity),
  }),
  defineArgs('NodeResourcesBalancedAllocation', {
    defaults: ({ resources }) => ({ resources: weighted(resources) }),
    errors: balanceErrors,
  }),
  defineArgs('NodeResourcesFit', {
    defaults: ({ scoringStrategy = { type: 'LeastAllocated' } }) => ({
      scoringStrategy: { ...scoringStrategy, resources: weighted(scoringStrategy.resources) },
    }),
    errors: fitErrors,
    isValidatedLate: true,
  }),
  defineArgs('PodTopologySpread', { errors: spreadErrors }),
  defineArgs('VolumeBinding', {
    defaults: ({ shape = [] }, isEnabled) => ({
      ...(shape.length === 0 && isEnabled('StorageCapacityScoring') && { shape: CAPACITY_SHAPE }),
    }),
    errors: volumeErrors,
  }),
])

export const ARGS_KINDS: readonly ConfigKind[] = Array.from(ARGS.values(), ({ kind }) => kind)

const CAPACITY_SHAPE: readonly ShapePoint[] = [
  { utilization: 0, score: 10 },
  { utilization: 100, score: 0 },
]

function preemptionErrors(path: FieldPath, args: ArgsOf<'DefaultPreemption'>): FieldError[] {
  const { minCandidateNodesPercentage: percentage, minCandidateNodesAbsolute: absolute } = args
  const [first, second] = [path.child('minCandidateNodesPercentage'), path.child('minCandidateNodesAbsolute')]
  return collectErrors(
    (percentage < 0 || percentage > 100) && first.invalid(percentage, 'not in valid range [0, 100]'),
    absolute < 0 && second.invalid(absolute, 'not in valid range [0, inf)'),
    percentage === 0 &&
      absolute === 0 && [
        first.invalid(percentage, 'cannot be zero at the same time as minCandidateNodesAbsolute'),
        second.invalid(absolute, 'cannot be zero at the same time as minCandidateNodesPercentage'),
      ],
  )
}

function balanceErrors(path: FieldPath, { resources = [] }: ArgsOf<'NodeResourcesBalancedAllocation'>): FieldError[] {
  const seen = new Set<string>()
  return resources.flatMap(({ name, weight }, at) => {
    const where = path.child('resources').index(at)
    const isSeen = seen.has(name)
    seen.add(name)
    return collectErrors(
      isSeen && where.child('name').duplicate(name),
      weight !== 1 && where.child('weight').invalid(weight, 'must be 1'),
    )
  })
}

const STRATEGIES = ['LeastAllocated', 'MostAllocated', 'RequestedToCapacityRatio']

function fitErrors(path: FieldPath, args: ArgsOf<'NodeResourcesFit'>): FieldError[] {
  const { ignoredResources = [], ignoredResourceGroups = [], scoringStrategy = {} } = args
  const { type = '', resources = [], requestedToCapacityRatio: ratio } = scoringStrategy
  const strategy = path.child('scoringStrategy')
  const errors = collectErrors(
    path.child('ignoredResources').each(ignoredResources, validateLabelName),
    path.child('ignoredResourceGroups').each(ignoredResourceGroups, groupErrors),
    !STRATEGIES.includes(type) && strategy.child('type').notSupported(type, STRATEGIES),
    strategy
      .child('resources')
      .each(resources, (path, { name, weight }) =>
        weight > 0 && weight <= 100
          ? []
          : [path.child('weight').invalid(weight, `resource weight of ${name} not in valid range (0, 100]`)],
      ),
  )
  const where = strategy.child('requestedToCapacityRatio')
  if (type !== 'RequestedToCapacityRatio') {
    return ratio === undefined
      ? errors
      : [...errors, where.forbidden('must be nil when type is not RequestedToCapacityRatio')]
  }
  if (ratio === undefined) return [...errors, where.required(`must be specified when type is ${type}`)]
  return [...errors, ...shapeErrors(where.child('shape'), ratio.shape)]
}

function groupErrors(path: FieldPath, name: string): FieldError[] {
  const slash = name.includes('/') ? [path.invalid(name, "resource group name can't contain '/'")] : []
  return [...slash, ...validateLabelName(path, name)]
}

function shapeErrors(path: FieldPath, shape: Shape = []): FieldError[] {
  if (shape.length === 0) return [path.required('at least one point must be specified')]
  const errors: FieldError[] = []
  const points = shape.map(({ utilization = 0, score = 0 }) => ({ utilization, score }))
  const fall = points.findIndex(({ utilization }, at) => at > 0 && (points[at - 1]?.utilization ?? 0) >= utilization)
  if (fall > 0) {
    const { utilization } = points[fall] as ShapePoint
    errors.push(path.index(fall).child('utilization').invalid(utilization, 'values must be sorted in increasing order'))
  }
  for (const [at, point] of points.entries()) {
    for (const [name, most] of [
      ['utilization', 100],
      ['score', 10],
    ] as const) {
      const value = point[name]
      if (value < 0 || value > most) {
        errors.push(path.index(at).child(name).invalid(value, `not in valid range [0, ${most}]`))
      }
    }
  }
  return errors
}

function spreadErrors(
  path: FieldPath,
  { defaultConstraints, defaultingType }: ArgsOf<'PodTopologySpread'>,
): FieldError[] {
  const constraints = (defaultConstraints ?? []) as readonly Partial<TopologySpreadConstraint>[]
  const where = path.child('defaultingType')
  const errors: FieldError[] = []
  if (!['System', 'List'].includes(defaultingType)) errors.push(where.notSupported(defaultingType, ['System', 'List']))
  else if (defaultingType === 'System' && constraints.length > 0) {
    errors.push(where.invalid(defaultingType, 'when .defaultConstraints are not empty'))
  }
  const list = path.child('defaultConstraints')
  return [...errors, ...constraints.flatMap((_, at) => constraintErrors(list, constraints, at))]
}

const ACTIONS = ['DoNotSchedule', 'ScheduleAnyway']

function constraintErrors(
  list: FieldPath,
  all: readonly Partial<TopologySpreadConstraint>[],
  at: number,
): FieldError[] {
  const { maxSkew = 0, topologyKey = '', whenUnsatisfiable = '', labelSelector } = all[at] ?? {}
  const path = list.index(at)
  const when = path.child('whenUnsatisfiable')
  const isRepeated = all
    .slice(0, at)
    .some((one) => (one.topologyKey ?? '') === topologyKey && (one.whenUnsatisfiable ?? '') === whenUnsatisfiable)
  return collectErrors(
    maxSkew <= 0 && path.child('maxSkew').invalid(maxSkew, 'not in valid range (0, inf)'),
    topologyKey === ''
      ? path.child('topologyKey').required('can not be empty')
      : validateLabelName(path.child('topologyKey'), topologyKey),
    whenUnsatisfiable === ''
      ? when.required('can not be empty')
      : !ACTIONS.includes(whenUnsatisfiable) && when.notSupported(whenUnsatisfiable, ACTIONS),
    labelSelector !== undefined &&
      path.child('labelSelector').forbidden('constraint must not define a selector, as they deduced for each pod'),
    isRepeated && path.duplicate(`{${topologyKey}, ${whenUnsatisfiable}}`),
  )
}

function volumeErrors(
  path: FieldPath,
  { bindTimeoutSeconds, shape }: ArgsOf<'VolumeBinding'>,
  isEnabled: IsEnabled,
): FieldError[] {
  const errors =
    bindTimeoutSeconds < 0
      ? [
          path
            .child('bindTimeoutSeconds')
            .invalid(bindTimeoutSeconds, 'invalid BindTimeoutSeconds, should not be a negative value'),
        ]
      : []
  if (isEnabled('StorageCapacityScoring')) return [...errors, ...shapeErrors(path.child('shape'), shape)]
  if (shape === undefined) return errors
  const points = shape.map(({ utilization = 0, score = 0 }) => ({ Utilization: utilization, Score: score }))
  const why = 'unexpected field `shape`, remove it or turn on the feature gate StorageCapacityScoring'
  return [...errors, path.child('shape').invalid(verbatim(JSON.stringify(points)), why)]
}

function affinityErrors(path: FieldPath, affinity: NodeAffinity | undefined): FieldError[] {
  const terms = affinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? []
  const required_ = path.child('requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms')
  const preferred = affinity?.preferredDuringSchedulingIgnoredDuringExecution ?? []
  return [
    ...required_.each(terms, termErrors),
    ...path
      .child('preferredDuringSchedulingIgnoredDuringExecution')
      .each(preferred, (path, { weight, preference }) => (weight === 0 ? [] : termErrors(path, preference))),
  ]
}

function termErrors(path: FieldPath, { matchExpressions = [] }: NodeSelectorTerm): FieldError[] {
  return path.child('matchExpressions').each(matchExpressions, (where, { key, operator, values = [] }) => {
    const known = OPERATORS.get(operator)
    if (known === undefined) return [where.child('operator').invalid(operator, 'not a valid selector operator')]
    return requirementErrors(key, known, values).map((error) => ({ ...error, field: `${where}.${error.field}` }))
  })
}

const OPERATORS = new Map<string, LabelOperator>([
  ['In', 'in'],
  ['NotIn', 'notin'],
  ['Exists', 'exists'],
  ['DoesNotExist', '!'],
  ['Gt', 'gt'],
  ['Lt', 'lt'],
])
