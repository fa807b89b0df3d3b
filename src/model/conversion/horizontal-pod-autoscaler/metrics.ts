/**
 * Converts metrics of HorizontalPodAutoscalers between v1, which has flat fields, and v2, which has an identifier and a
 * target. One table serves both directions.
 */
import { structFor } from '#apis/schemas.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '#lib/json/value.ts'
import { decodeValue } from '#meta/codec/decode.ts'
import { isZeroQuantity, parseQuantity } from '#meta/quantity.ts'

/** v1's name and v2's path of each field of a metric source. */
type Fields = readonly (readonly [v1: string, v2: readonly [string] | readonly [string, string]])[]

interface Source {
  readonly spec: Fields
  readonly status: Fields
  /** Completes a target of v1. */
  readonly complete: (target: JsonObject) => void
}

const byUtilization = (target: JsonObject): void => {
  target['type'] = target['averageUtilization'] === undefined ? 'AverageValue' : 'Utilization'
}

/** v1 always has a value, so zero beside an average means unset. */
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

/** By the member of a metric. */
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

/** The desired or the measured values. */
export type Part = 'spec' | 'status'

/** A v2 metric in v1, canonical. */
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

/** A canonical v1 metric in v2; not canonical. */
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
