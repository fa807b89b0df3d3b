/** What plugins may be told: the shapes of their arguments, what they are when nothing is said, and what is wrong with them. */
import type { NodeAffinity, NodeSelectorTerm, TopologySpreadConstraint } from '#apis/core/v1.ts'
import { structFor } from '#apis/schemas.ts'
import {
  type ConfigKind,
  defineConfig,
  flag,
  listOf,
  optional,
  type Optional,
  scalar,
  struct,
  text,
  texts,
} from '#meta/config-kind.ts'
import { durationMs } from '#meta/duration.ts'
import { type LabelOperator, requirementErrors } from '#meta/labels.ts'
import type { Schema } from '#meta/schema.ts'
import {
  duplicate,
  type FieldError,
  forbidden,
  index,
  invalid,
  notSupported,
  required,
  verbatim,
} from '#meta/validation/field-error.ts'
import { validateLabelName } from '#meta/validation/rules.ts'

import type { ResourceWeight, ShapePoint, Strategy } from '../resource-scores.ts'

export const GROUP_VERSION = 'kubescheduler.config.k8s.io/v1'

export type IsEnabled = (gate: string) => boolean

export interface PluginArgs {
  readonly kind: ConfigKind
  /** Names of the fields as they are shown. */
  readonly fields: readonly string[]
  /** What is there when nothing is said. */
  readonly withDefaults: (given: never, isEnabled: IsEnabled) => object
  readonly errors: (path: string, args: never, isEnabled: IsEnabled) => FieldError[]
  /** As upstream: only when the plugin is made. */
  readonly isJudgedLate?: boolean
}

function defineArgs<A extends object>(
  plugin: string,
  fields: Readonly<Record<string, Schema | Optional>>,
  rules: Partial<{
    readonly defaults: (given: A, isEnabled: IsEnabled) => object
    readonly errors: (path: string, args: A, isEnabled: IsEnabled) => FieldError[]
    readonly isJudgedLate: boolean
  }>,
): [string, PluginArgs] {
  const { defaults = () => ({}), errors = () => [], isJudgedLate = false } = rules
  const kind = defineConfig(`${plugin}Args`, [GROUP_VERSION], `v1.${plugin}Args`, fields)
  const withDefaults = (given: A, isEnabled: IsEnabled): object => ({ ...given, ...defaults(given, isEnabled) })
  return [plugin, { kind, fields: Object.keys(fields), withDefaults, errors, isJudgedLate }]
}

const int32 = scalar('int32')
const int64 = scalar('int64')
const duration = scalar('duration', 'v1.Duration')
const RESOURCES = listOf(struct('v1.ResourceSpec', { name: text, weight: int64 }))
const SHAPE = listOf(struct('v1.UtilizationShapePoint', { utilization: int32, score: int32 }))
const STRATEGY = struct('v1.ScoringStrategy', {
  type: text,
  resources: RESOURCES,
  requestedToCapacityRatio: optional(struct('v1.RequestedToCapacityRatioParam', { shape: SHAPE })),
})

const CPU_AND_MEMORY: readonly ResourceWeight[] = [
  { name: 'cpu', weight: 1 },
  { name: 'memory', weight: 1 },
]

function weighted(resources: readonly Partial<ResourceWeight>[] = []): readonly ResourceWeight[] {
  if (resources.length === 0) return CPU_AND_MEMORY
  return resources.map(({ name = '', weight = 0 }) => ({ name, weight: weight === 0 ? 1 : weight }))
}

interface PreemptionArgs {
  readonly minCandidateNodesPercentage?: number
  readonly minCandidateNodesAbsolute?: number
}

interface SpreadArgs {
  readonly defaultConstraints?: readonly Partial<TopologySpreadConstraint>[]
  readonly defaultingType?: string
}

interface FitArgs {
  readonly ignoredResources?: readonly string[]
  readonly ignoredResourceGroups?: readonly string[]
  readonly scoringStrategy?: Partial<Strategy>
}

export const ARGS: ReadonlyMap<string, PluginArgs> = new Map([
  defineArgs<PreemptionArgs>(
    'DefaultPreemption',
    { minCandidateNodesPercentage: optional(int32), minCandidateNodesAbsolute: optional(int32) },
    {
      defaults: ({ minCandidateNodesPercentage = 10, minCandidateNodesAbsolute = 100 }) => ({
        minCandidateNodesPercentage,
        minCandidateNodesAbsolute,
      }),
      errors: preemptionErrors,
    },
  ),
  defineArgs<{ filterTimeout?: string; bindingTimeout?: string }>(
    'DynamicResources',
    { filterTimeout: optional(duration), bindingTimeout: optional(duration) },
    {
      defaults: ({ filterTimeout = '10s', bindingTimeout = '10m0s' }) => ({ filterTimeout, bindingTimeout }),
      errors: (path, { filterTimeout = '0s', bindingTimeout = '10m' }) => [
        ...(durationMs(filterTimeout) < 0
          ? [invalid(`${path}.filterTimeout`, filterTimeout, 'must be zero or positive')]
          : []),
        ...(durationMs(bindingTimeout) < 1000
          ? [invalid(`${path}.bindingTimeout`, bindingTimeout, 'must be at least 1 second')]
          : []),
      ],
    },
  ),
  defineArgs<{ hardPodAffinityWeight?: number; ignorePreferredTermsOfExistingPods?: boolean }>(
    'InterPodAffinity',
    { hardPodAffinityWeight: optional(int32), ignorePreferredTermsOfExistingPods: flag },
    {
      defaults: ({ hardPodAffinityWeight = 1, ignorePreferredTermsOfExistingPods = false }) => ({
        hardPodAffinityWeight,
        ignorePreferredTermsOfExistingPods,
      }),
      errors: (path, { hardPodAffinityWeight: weight = 1 }) =>
        weight < 0 || weight > 100
          ? [invalid(`${path}.hardPodAffinityWeight`, weight, 'not in valid range [0, 100]')]
          : [],
    },
  ),
  defineArgs<{ addedAffinity?: NodeAffinity }>(
    'NodeAffinity',
    { addedAffinity: optional(structFor('core.v1', 'NodeAffinity')) },
    { errors: (path, { addedAffinity }) => affinityErrors(`${path}.addedAffinity`, addedAffinity) },
  ),
  defineArgs<{ resources?: readonly Partial<ResourceWeight>[] }>(
    'NodeResourcesBalancedAllocation',
    { resources: RESOURCES },
    { defaults: ({ resources }) => ({ resources: weighted(resources) }), errors: balanceErrors },
  ),
  defineArgs<FitArgs>(
    'NodeResourcesFit',
    { ignoredResources: texts, ignoredResourceGroups: texts, scoringStrategy: optional(STRATEGY) },
    {
      defaults: ({ scoringStrategy = { type: 'LeastAllocated' } }) => ({
        scoringStrategy: { ...scoringStrategy, resources: weighted(scoringStrategy.resources) },
      }),
      errors: fitErrors,
      isJudgedLate: true,
    },
  ),
  defineArgs<SpreadArgs>(
    'PodTopologySpread',
    { defaultConstraints: listOf(structFor('core.v1', 'TopologySpreadConstraint')), defaultingType: text },
    { defaults: ({ defaultingType = 'System' }) => ({ defaultingType }), errors: spreadErrors },
  ),
  defineArgs<{ bindTimeoutSeconds?: number; shape?: readonly Partial<ShapePoint>[] }>(
    'VolumeBinding',
    { bindTimeoutSeconds: optional(int64), shape: SHAPE },
    {
      defaults: ({ bindTimeoutSeconds = 600, shape = [] }, isEnabled) => ({
        bindTimeoutSeconds,
        ...(shape.length === 0 && isEnabled('StorageCapacityScoring') && { shape: CAPACITY_SHAPE }),
      }),
      errors: volumeErrors,
    },
  ),
])

export const ARGS_KINDS: readonly ConfigKind[] = Array.from(ARGS.values(), ({ kind }) => kind)

const CAPACITY_SHAPE: readonly ShapePoint[] = [
  { utilization: 0, score: 10 },
  { utilization: 100, score: 0 },
]

function preemptionErrors(path: string, args: PreemptionArgs): FieldError[] {
  const { minCandidateNodesPercentage: percentage = 10, minCandidateNodesAbsolute: absolute = 100 } = args
  const [first, second] = [`${path}.minCandidateNodesPercentage`, `${path}.minCandidateNodesAbsolute`]
  const errors: FieldError[] = []
  if (percentage < 0 || percentage > 100) errors.push(invalid(first, percentage, 'not in valid range [0, 100]'))
  if (absolute < 0) errors.push(invalid(second, absolute, 'not in valid range [0, inf)'))
  if (percentage === 0 && absolute === 0) {
    errors.push(
      invalid(first, percentage, 'cannot be zero at the same time as minCandidateNodesAbsolute'),
      invalid(second, absolute, 'cannot be zero at the same time as minCandidateNodesPercentage'),
    )
  }
  return errors
}

function balanceErrors(
  path: string,
  { resources = [] }: { resources?: readonly Partial<ResourceWeight>[] },
): FieldError[] {
  const seen = new Set<string>()
  return resources.flatMap(({ name = '', weight = 0 }, at) => {
    const where = index(`${path}.resources`, at)
    const isSeen = seen.has(name)
    seen.add(name)
    return [
      ...(isSeen ? [duplicate(`${where}.name`, name)] : []),
      ...(weight === 1 ? [] : [invalid(`${where}.weight`, weight, 'must be 1')]),
    ]
  })
}

const STRATEGIES = ['LeastAllocated', 'MostAllocated', 'RequestedToCapacityRatio']

function fitErrors(path: string, args: FitArgs): FieldError[] {
  const { ignoredResources = [], ignoredResourceGroups = [], scoringStrategy = {} } = args
  const { type = '', resources = [], requestedToCapacityRatio: ratio } = scoringStrategy
  const below = (name: string): string => (path === '' ? name : `${path}.${name}`)
  const strategy = below('scoringStrategy')
  const errors = [
    ...ignoredResources.flatMap((name, at) => validateLabelName(index(below('ignoredResources'), at), name)),
    ...ignoredResourceGroups.flatMap((name, at) => groupErrors(index(below('ignoredResourceGroups'), at), name)),
    ...(STRATEGIES.includes(type) ? [] : [notSupported(`${strategy}.type`, type, STRATEGIES)]),
    ...resources.flatMap(({ name, weight }, at) =>
      weight > 0 && weight <= 100
        ? []
        : [
            invalid(
              `${index(`${strategy}.resources`, at)}.weight`,
              weight,
              `resource weight of ${name} not in valid range (0, 100]`,
            ),
          ],
    ),
  ]
  const where = `${strategy}.requestedToCapacityRatio`
  if (type !== 'RequestedToCapacityRatio') {
    return ratio === undefined
      ? errors
      : [...errors, forbidden(where, 'must be nil when type is not RequestedToCapacityRatio')]
  }
  if (ratio === undefined) return [...errors, required(where, `must be specified when type is ${type}`)]
  return [...errors, ...shapeErrors(`${where}.shape`, ratio.shape)]
}

function groupErrors(path: string, name: string): FieldError[] {
  const slash = name.includes('/') ? [invalid(path, name, "resource group name can't contain '/'")] : []
  return [...slash, ...validateLabelName(path, name)]
}

function shapeErrors(path: string, shape: readonly Partial<ShapePoint>[] = []): FieldError[] {
  if (shape.length === 0) return [required(path, 'at least one point must be specified')]
  const errors: FieldError[] = []
  const points = shape.map(({ utilization = 0, score = 0 }) => ({ utilization, score }))
  const fall = points.findIndex(({ utilization }, at) => at > 0 && (points[at - 1]?.utilization ?? 0) >= utilization)
  if (fall > 0) {
    const { utilization } = points[fall] as ShapePoint
    errors.push(invalid(`${index(path, fall)}.utilization`, utilization, 'values must be sorted in increasing order'))
  }
  for (const [at, point] of points.entries()) {
    for (const [name, most] of [
      ['utilization', 100],
      ['score', 10],
    ] as const) {
      const value = point[name]
      if (value < 0 || value > most) {
        errors.push(invalid(`${index(path, at)}.${name}`, value, `not in valid range [0, ${most}]`))
      }
    }
  }
  return errors
}

function spreadErrors(path: string, { defaultConstraints = [], defaultingType = 'System' }: SpreadArgs): FieldError[] {
  const where = `${path}.defaultingType`
  const errors: FieldError[] = []
  if (!['System', 'List'].includes(defaultingType)) errors.push(notSupported(where, defaultingType, ['System', 'List']))
  else if (defaultingType === 'System' && defaultConstraints.length > 0) {
    errors.push(invalid(where, defaultingType, 'when .defaultConstraints are not empty'))
  }
  const list = `${path}.defaultConstraints`
  return [...errors, ...defaultConstraints.flatMap((_, at) => constraintErrors(list, defaultConstraints, at))]
}

const ACTIONS = ['DoNotSchedule', 'ScheduleAnyway']

function constraintErrors(list: string, all: readonly Partial<TopologySpreadConstraint>[], at: number): FieldError[] {
  const { maxSkew = 0, topologyKey = '', whenUnsatisfiable = '', labelSelector } = all[at] ?? {}
  const path = index(list, at)
  const errors: FieldError[] = []
  if (maxSkew <= 0) errors.push(invalid(`${path}.maxSkew`, maxSkew, 'not in valid range (0, inf)'))
  if (topologyKey === '') errors.push(required(`${path}.topologyKey`, 'can not be empty'))
  else errors.push(...validateLabelName(`${path}.topologyKey`, topologyKey))
  const when = `${path}.whenUnsatisfiable`
  if (whenUnsatisfiable === '') errors.push(required(when, 'can not be empty'))
  else if (!ACTIONS.includes(whenUnsatisfiable)) errors.push(notSupported(when, whenUnsatisfiable, ACTIONS))
  if (labelSelector !== undefined) {
    errors.push(
      forbidden(`${path}.labelSelector`, 'constraint must not define a selector, as they deduced for each pod'),
    )
  }
  const isRepeated = all
    .slice(0, at)
    .some((one) => (one.topologyKey ?? '') === topologyKey && (one.whenUnsatisfiable ?? '') === whenUnsatisfiable)
  if (isRepeated) errors.push(duplicate(path, `{${topologyKey}, ${whenUnsatisfiable}}`))
  return errors
}

function volumeErrors(
  path: string,
  { bindTimeoutSeconds = 600, shape }: { bindTimeoutSeconds?: number; shape?: readonly Partial<ShapePoint>[] },
  isEnabled: IsEnabled,
): FieldError[] {
  const errors =
    bindTimeoutSeconds < 0
      ? [
          invalid(
            `${path}.bindTimeoutSeconds`,
            bindTimeoutSeconds,
            'invalid BindTimeoutSeconds, should not be a negative value',
          ),
        ]
      : []
  if (isEnabled('StorageCapacityScoring')) return [...errors, ...shapeErrors(`${path}.shape`, shape)]
  if (shape === undefined) return errors
  const points = shape.map(({ utilization = 0, score = 0 }) => ({ Utilization: utilization, Score: score }))
  const why = 'unexpected field `shape`, remove it or turn on the feature gate StorageCapacityScoring'
  return [...errors, invalid(`${path}.shape`, verbatim(JSON.stringify(points)), why)]
}

function affinityErrors(path: string, affinity: NodeAffinity | undefined): FieldError[] {
  const terms = affinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? []
  const required_ = `${path}.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms`
  const preferred = affinity?.preferredDuringSchedulingIgnoredDuringExecution ?? []
  return [
    ...terms.flatMap((term, at) => termErrors(index(required_, at), term)),
    ...preferred.flatMap(({ weight, preference }, at) =>
      weight === 0 ? [] : termErrors(index(`${path}.preferredDuringSchedulingIgnoredDuringExecution`, at), preference),
    ),
  ]
}

function termErrors(path: string, { matchExpressions = [] }: NodeSelectorTerm): FieldError[] {
  return matchExpressions.flatMap(({ key, operator, values = [] }, at) => {
    const where = index(`${path}.matchExpressions`, at)
    const known = OPERATORS.get(operator)
    if (known === undefined) return [invalid(`${where}.operator`, operator, 'not a valid selector operator')]
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
