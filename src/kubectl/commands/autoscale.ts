/** kubectl autoscale: creates a HorizontalPodAutoscaler. */
import type { HorizontalPodAutoscaler, MetricSpec } from '#apis/autoscaling/v2.ts'
import { flag } from '#lib/flags/flags.ts'
import { bool, int32, string } from '#lib/flags/kinds.ts'
import { goDouble } from '#lib/go/text.ts'
import type { JsonObject } from '#lib/json/value.ts'
import { apiVersionOf } from '#meta/kind.ts'
import { canonicalQuantity } from '#meta/quantity.ts'

import { withMadeConfig } from '../apply/last-applied.ts'
import type { Info } from '../builder/select-options.ts'
import { selectFor } from '../builder/selection.ts'
import { SCALED_TYPES } from '../choices.ts'
import { type Command, defineCommand, type Invocation } from '../command.ts'
import { asError, KubectlError } from '../errors.ts'
import {
  DRY_RUN_FLAG,
  type DryRun,
  dryRunOf,
  dryRunQuery,
  fieldManagerFlag,
  fileFlags,
  withDryRun,
} from '../flag-sets.ts'
import { printerOf, printFlags } from '../printing.ts'
import { RECORD_FLAG, recorded } from '../recording.ts'
import type { AnyObject } from '../session/rest.ts'

const FLAGS = {
  ...printFlags(),
  ...fileFlags('identifying the resource to autoscale.'),
  ...DRY_RUN_FLAG,
  ...RECORD_FLAG,
  ...fieldManagerFlag('kubectl-autoscale'),
  cpu: flag(
    string,
    '',
    'Target CPU usage: a percentage of the requests of pods ("70%") or an amount for each pod ("500m"; without a unit, millicores).',
  ),
  'cpu-percent': flag(int32, -1, 'Target CPU usage in percent of the requests of pods.', {
    deprecated:
      "Use --cpu with percentage or resource quantity format (e.g., '70%' for utilization or '500m' for milliCPU).",
  }),
  max: flag(int32, -1, 'Maximum number of pods. Required.', { required: true }),
  memory: flag(
    string,
    '',
    'Target memory usage: a percentage of the requests of pods ("60%") or an amount for each pod ("200Mi"; without a unit, mebibytes).',
  ),
  min: flag(int32, -1, 'Minimum number of pods. If negative, the server chooses a default.'),
  name: flag(string, '', 'Name of the new object. If empty, use the name of the workload.'),
  'save-config': flag(bool, false, 'Save the configuration in an annotation for kubectl apply.'),
}

type AutoscaleInvocation = Invocation<typeof FLAGS>

export const autoscale: Command = defineCommand({
  name: 'autoscale',
  use: '(-f FILENAME | TYPE NAME | TYPE/NAME) [--min=MINPODS] --max=MAXPODS [--cpu=CPU] [--memory=MEMORY] [options]',
  long: 'Create an autoscaler for a deployment, replica set, stateful set or replication controller.',
  examples: `# Scale deployment "foo" between 2 and 10 pods
kubectl autoscale deployment foo --min=2 --max=10

# Aim at 80% of the requested CPU
kubectl autoscale rc foo --max=5 --cpu=80%`,
  flags: FLAGS,
  completes: { resources: SCALED_TYPES },
  async run(invocation) {
    const { args, flags, session } = invocation
    const dryRun = dryRunOf(flags['dry-run'], invocation)
    await session.config()
    const { namespace, isExplicit } = await session.namespace()
    const metrics = metricsOf(flags)
    const selection = await selectFor(invocation, { args })
    let count = 0
    await selection.visit(async (info) => {
      requireScale(info)
      const scaler = scalerFor(info, flags, { metrics, ...(isExplicit && { namespace }) })
      const object = recorded(invocation, scaler as unknown as AnyObject) as unknown as HorizontalPodAutoscaler
      await createScaler(invocation, object, { namespace, dryRun })
      count++
    })
    if (count === 0) throw new KubectlError('no objects passed to autoscale')
  },
})

/** Throws KubectlError for an invalid metric. */
function metricsOf(flags: AutoscaleInvocation['flags']): MetricSpec[] {
  const { max, min, cpu, memory } = flags
  const percent = flags['cpu-percent']
  if (max < 1) throw new KubectlError(`--max=MAXPODS is required and must be at least 1, max: ${max}`)
  if (max < min) {
    throw new KubectlError(`--max=MAXPODS must be larger or equal to --min=MINPODS, max: ${max}, min: ${min}`)
  }
  if (percent > 0 && cpu !== '') throw new KubectlError('--cpu-percent and --cpu are mutually exclusive')
  return [
    ...(percent > 0 ? [metricFor('cpu', { type: 'Utilization', averageUtilization: percent })] : []),
    ...(cpu === '' ? [] : [metricFor('cpu', targetOf(cpu, 'cpu'))]),
    ...(memory === '' ? [] : [metricFor('memory', targetOf(memory, 'memory'))]),
  ]
}

type Target = NonNullable<MetricSpec['resource']>['target']

function metricFor(name: string, target: Target): MetricSpec {
  return { type: 'Resource', resource: { name, target } }
}

/** A percentage or an amount. */
export function targetOf(given: string, resource: 'cpu' | 'memory'): Target {
  const text = given.trim()
  if (text === '') throw new KubectlError('empty input')
  if (text.endsWith('%')) {
    const share = text.slice(0, -1)
    if (!/^\+?\d+$/.test(share) || Number(share) > 0x7f_ff_ff_ff) {
      throw new KubectlError(`invalid percentage value: ${share}`)
    }
    return { type: 'Utilization', averageUtilization: Number(share) }
  }
  const isPlain = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text)
  const amount = isPlain ? `${goDouble(Number(text))}${resource === 'cpu' ? 'm' : 'Mi'}` : text
  try {
    return { type: 'AverageValue', averageValue: canonicalQuantity(amount) }
  } catch (cause) {
    throw isPlain ? asError(cause) : new KubectlError(`invalid resource ${resource} value: ${text}`, { cause })
  }
}

function requireScale({ kind }: Info): void {
  if (kind.subresources?.some((one) => (typeof one === 'string' ? one : one.name) === 'scale')) return
  const { group, version, plural } = kind
  throw new KubectlError(
    `cannot autoscale a ${kind.kind}: could not find scale subresource for ${group}/${version}, Resource=${plural} in discovery information`,
  )
}

function scalerFor(
  { kind, name }: Info,
  flags: AutoscaleInvocation['flags'],
  { metrics, namespace }: { readonly metrics: readonly MetricSpec[]; readonly namespace?: string },
): HorizontalPodAutoscaler {
  return {
    kind: 'HorizontalPodAutoscaler',
    apiVersion: 'autoscaling/v2',
    metadata: { name: flags.name === '' ? name : flags.name, ...(namespace !== undefined && { namespace }) },
    spec: {
      scaleTargetRef: { kind: kind.kind, name, apiVersion: apiVersionOf(kind) },
      ...(flags.min > 0 && { minReplicas: flags.min }),
      maxReplicas: flags.max,
      ...(metrics.length > 0 && { metrics: [...metrics] }),
    },
    status: { desiredReplicas: 0, currentMetrics: null },
  }
}

async function createScaler(
  invocation: AutoscaleInvocation,
  scaler: HorizontalPodAutoscaler,
  { namespace, dryRun }: { readonly namespace: string; readonly dryRun: DryRun },
): Promise<void> {
  const { flags, session, stdout } = invocation
  const print = async (object: unknown, operation: string): Promise<void> => {
    const printer = await printerOf(invocation, { operation: withDryRun(operation, dryRun), keepOrder: true })
    printer.print(object as JsonObject, stdout)
  }
  if (dryRun === 'client') return print(scaler, 'created')
  const kind = await (await session.mapper()).ofObject('autoscaling/v2', 'HorizontalPodAutoscaler')
  const object = withMadeConfig(scaler as unknown as AnyObject, flags['save-config'])
  const query = { fieldManager: flags['field-manager'], ...dryRunQuery(dryRun) }
  const rest = await session.rest()
  const made = await rest.create({ kind, namespace }, object, query).catch(async (error: unknown) => {
    const older = await session.mapper().then((mapper) => mapper.ofObject('autoscaling/v1', 'HorizontalPodAutoscaler'))
    return rest.create({ kind: older, namespace }, olderScaler(scaler, flags, error), query)
  })
  return print(made, 'autoscaled')
}

/** The v1 form for servers without v2; throws if v1 cannot express the metrics. */
function olderScaler(
  { metadata, spec }: HorizontalPodAutoscaler,
  { cpu, memory }: AutoscaleInvocation['flags'],
  cause: unknown,
): object {
  const fail = (why: string): KubectlError =>
    new KubectlError(
      `failed to create autoscaling/v2 HPA and the configuration is incompatible with autoscaling/v1: ${why}`,
      { cause },
    )
  if (cpu === '') throw fail('empty input')
  if (!cpu.trim().endsWith('%') || memory !== '') throw fail('%!w(<nil>)')
  const { metrics: _, ...kept } = spec ?? {}
  return { kind: 'HorizontalPodAutoscaler', apiVersion: 'autoscaling/v1', metadata, spec: kept }
}
