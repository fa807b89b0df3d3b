/**
 * Metrics of HorizontalPodAutoscalers: v1 has flat fields where v2 has an identifier and a target. The table says which
 * is which and serves both directions; v2's type of target has no field in v1 and follows from the values there are.
 */
import { structFor } from '#apis/schemas.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '#lib/json-value.ts'
import { decodeValue } from '#meta/codec/decode.ts'
import { isZeroQuantity, parseQuantity } from '#meta/quantity.ts'

/** v1's name and v2's path of each field of a source of metrics. */
type Fields = readonly (readonly [v1: string, v2: readonly [string] | readonly [string, string]])[]

interface Source {
  readonly spec: Fields
  readonly status: Fields
  /** Completes what v1 said of a target. */
  readonly complete: (target: JsonObject) => void
}

const byUtilization = (target: JsonObject): void => {
  target['type'] = target['averageUtilization'] === undefined ? 'AverageValue' : 'Utilization'
}

/** v1 always has a value, so that zero beside an average means that there is none. */
const byAverage = (target: JsonObject): void => {
  target['type'] = target['averageValue'] === undefined ? 'Value' : 'AverageValue'
  const { value } = target
  const zero = typeof value === 'string' && isZeroQuantity(parseQuantity(value))
  if (target['type'] === 'AverageValue' && zero) delete target['value']
}

const metric: Fields = [
  ['metricName', ['metric', 'name']],
  ['selector', ['metric', 'selector']],
]
const externalMetric: Fields = [
  ['metricName', ['metric', 'name']],
  ['metricSelector', ['metric', 'selector']],
]
const utilization = {
  spec: [
    ['targetAverageUtilization', ['target', 'averageUtilization']],
    ['targetAverageValue', ['target', 'averageValue']],
  ],
  status: [
    ['currentAverageUtilization', ['current', 'averageUtilization']],
    ['currentAverageValue', ['current', 'averageValue']],
  ],
} as const satisfies Record<string, Fields>
const container: Fields = [
  ['name', ['name']],
  ['container', ['container']],
]
const described: Fields = [['target', ['describedObject']]]

/** By the member of a metric that holds them. */
const sources: ReadonlyMap<string, Source> = new Map<string, Source>([
  [
    'object',
    {
      spec: [
        ...described,
        ...metric,
        ['targetValue', ['target', 'value']],
        ['averageValue', ['target', 'averageValue']],
      ],
      status: [
        ...described,
        ...metric,
        ['currentValue', ['current', 'value']],
        ['averageValue', ['current', 'averageValue']],
      ],
      complete: byAverage,
    },
  ],
  [
    'pods',
    {
      spec: [...metric, ['targetAverageValue', ['target', 'averageValue']]],
      status: [...metric, ['currentAverageValue', ['current', 'averageValue']]],
      complete: (target) => void (target['type'] = 'AverageValue'),
    },
  ],
  [
    'resource',
    {
      spec: [['name', ['name']], ...utilization.spec],
      status: [['name', ['name']], ...utilization.status],
      complete: byUtilization,
    },
  ],
  [
    'containerResource',
    {
      spec: [...container, ...utilization.spec],
      status: [...container, ...utilization.status],
      complete: byUtilization,
    },
  ],
  [
    'external',
    {
      spec: [
        ...externalMetric,
        ['targetValue', ['target', 'value']],
        ['targetAverageValue', ['target', 'averageValue']],
      ],
      status: [
        ...externalMetric,
        ['currentValue', ['current', 'value']],
        ['currentAverageValue', ['current', 'averageValue']],
      ],
      complete: (target) => void (target['type'] = target['value'] === undefined ? 'AverageValue' : 'Value'),
    },
  ],
])

/** What is converted: what is wanted, or what was measured. */
export type Part = 'spec' | 'status'

/** A metric of v2 as v1 would have it, canonical. */
export function metricToV1(part: Part, given: JsonObject): JsonObject {
  const converted = eachSource(given, (source, { [part]: fields }) => {
    const output: JsonObject = {}
    for (const [name, path] of fields) {
      const value = valueAt(source, path)
      if (value !== undefined) output[name] = value
    }
    return output
  })
  const schema = structFor('autoscaling.v1', part === 'spec' ? 'MetricSpec' : 'MetricStatus')
  return decodeValue(schema, converted, 'Ignore', { offences: [] }) as JsonObject
}

/** A canonical metric of v1 as v2 would have it; not canonical. */
export function metricFromV1(part: Part, given: JsonObject): JsonObject {
  return eachSource(given, (source, { [part]: fields, complete }) => {
    const output: JsonObject = {}
    for (const [name, path] of fields) {
      const value = source[name]
      if (value !== undefined) setAt(output, path, value)
    }
    if (part === 'spec') complete((output['target'] ??= {}) as JsonObject)
    return output
  })
}

function eachSource(given: JsonObject, change: (source: JsonObject, fields: Source) => JsonObject): JsonObject {
  const output: JsonObject = { type: given['type'] ?? '' }
  for (const [name, fields] of sources) {
    const source = given[name]
    if (isJsonObject(source)) output[name] = change(source, fields)
  }
  return output
}

function valueAt(source: JsonObject, [first, second]: readonly [string, string?]): JsonValue | undefined {
  const value = source[first]
  return second === undefined || !isJsonObject(value) ? value : value[second]
}

function setAt(target: JsonObject, [first, second]: readonly [string, string?], value: JsonValue): void {
  if (second === undefined) target[first] = value
  else target[first] = { ...(target[first] as JsonObject | undefined), [second]: value }
}
