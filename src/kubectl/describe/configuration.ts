/** Describes config maps, secrets, service accounts, quotas, limit ranges, priority classes and disruption budgets. */
import type { ConfigMap, LimitRange, Namespace, ResourceQuota, Secret, ServiceAccount } from '#apis/core/v1.ts'
import type { PodDisruptionBudget } from '#apis/policy/v1.ts'
import type { PriorityClass } from '#apis/scheduling/v1.ts'
import { labelSelectorText } from '#meta/label-selector.ts'
import { labelsText } from '#meta/labels.ts'
import type { KubeObject } from '#meta/object.ts'
import { parseQuantity, quantityOf, quantityText, quantityValue } from '#meta/quantity.ts'
import { StatusError } from '#meta/status.ts'

import { type DescribedKinds, describes, describesWithoutEvents } from './describer.ts'
import type { RelatedObjects } from './related.ts'
import { cells, nested, type Part } from './rows.ts'
import { byKey, clusterHead, head, nameRows, sortedBy, timedConditionRow } from './sections.ts'

export const CONFIGURATION_KINDS: DescribedKinds = {
  ConfigMap: describes<ConfigMap>('v1/configmaps', (configMap) => [
    ...head(configMap),
    '\nData\n====',
    ...byKey(configMap.data).map(([key, value]) => `${key}:\n----\n${value}\n`),
    '\nBinaryData\n====',
    ...byKey(configMap.binaryData).map(([key, value]) => `${key}: ${sizeOf(value)} bytes`),
    '',
  ]),
  Secret: describesWithoutEvents<Secret>('v1/secrets', (secret) => [
    ...head(secret),
    `\nType:\t${secret.type ?? ''}`,
    '\nData\n====',
    ...byKey(secret.data).map(([key, value]) => [key, secretText(secret, key, value)] as const),
  ]),
  ServiceAccount: describes<ServiceAccount>('v1/serviceaccounts', (account) => [
    ...head(account),
    ...pullSecretRows((account.imagePullSecrets ?? []).map((secret) => secret.name ?? '')),
  ]),
  ResourceQuota: describesWithoutEvents<ResourceQuota>('v1/resourcequotas', (quota) => [
    ...nameRows(quota),
    ...scopeRows(quota.spec?.scopes, ' *'),
    {
      columns: ['Resource', 'Used', 'Hard'],
      rows: byKey(quota.status?.hard).map(([name, hard]) => [name, usedText(quota.status?.used?.[name], hard), hard]),
    },
  ]),
  LimitRange: describesWithoutEvents<LimitRange>('v1/limitranges', (range) => [
    ...nameRows(range),
    { columns: LIMITS, rows: limitRows(range) },
  ]),
  Namespace: describesWithoutEvents('v1/namespaces', namespaceRows),
  'PriorityClass.scheduling.k8s.io': describes<PriorityClass>('scheduling.k8s.io/v1/priorityclasses', (priority) => [
    ['Name', priority.metadata.name],
    ['Value', priority.value],
    ['GlobalDefault', priority.globalDefault === true],
    ['PreemptionPolicy', priority.preemptionPolicy ?? ''],
    ['Description', priority.description ?? ''],
    ['Annotations', labelsText(priority.metadata.annotations)],
  ]),
  'PodDisruptionBudget.policy': describes('policy/v1/poddisruptionbudgets', budgetRows),
}

function sizeOf(base64: string): number {
  return Buffer.from(base64, 'base64').length
}

function secretText({ type }: Secret, key: string, value: string): string {
  const isToken = key === 'token' && type === 'kubernetes.io/service-account-token'
  return isToken ? Buffer.from(value, 'base64').toString() : `${sizeOf(value)} bytes`
}

const PULL_SECRETS = 'Image pull secrets:'

function pullSecretRows([first = '<none>', ...others]: readonly string[]): Part[] {
  return [cells(PULL_SECRETS, first), ...others.map((name) => cells(' '.repeat(PULL_SECRETS.length), name))]
}

const SCOPES: Readonly<Record<string, string>> = {
  Terminating:
    'Matches all pods that have an active deadline. These pods have a limited lifespan on a node before being actively terminated by the system.',
  NotTerminating:
    'Matches all pods that do not have an active deadline. These pods usually include long running pods whose container command is not expected to terminate.',
  BestEffort:
    'Matches all pods that do not have resource requirements set. These pods have a best effort quality of service.',
  NotBestEffort:
    'Matches all pods that have at least one resource requirement set. These pods have a burstable or guaranteed quality of service.',
}

function scopeRows(scopes: readonly string[] = [], bullet = '*'): Part[] {
  if (scopes.length === 0) return []
  const sorted = [...scopes].sort()
  const known = sorted.filter((scope) => SCOPES[scope] !== undefined)
  return [['Scopes', sorted.join(', ')], ...known.map((scope) => `${bullet} ${SCOPES[scope]}`)]
}

/** In the format of the hard limit. */
function usedText(used = '0', hard: string): string {
  const [amount, limit] = [parseQuantity(used), parseQuantity(hard)]
  return quantityText(amount.format === limit.format ? amount : quantityOf(quantityValue(amount), limit.format))
}

const LIMITS = ['Type', 'Resource', 'Min', 'Max', 'Default Request', 'Default Limit', 'Max Limit/Request Ratio']

function limitRows({ spec }: LimitRange): string[][] {
  return (spec?.limits ?? []).flatMap((item) => {
    const { max = {}, min = {}, defaultRequest = {}, maxLimitRequestRatio = {}, type } = item
    const limit = item.default ?? {}
    const lists = [min, max, defaultRequest, limit, maxLimitRequestRatio]
    const names = new Set(lists.flatMap((list) => Object.keys(list)))
    return [...names].sort().map((name) => [type, name, ...lists.map((list) => list[name] ?? '-')])
  })
}

async function namespaceRows(namespace: Namespace, around: RelatedObjects): Promise<Part[]> {
  const { name = '' } = namespace.metadata
  const [quotas, ranges] = await Promise.all([
    listed<ResourceQuota>(around, 'v1/resourcequotas', name),
    listed<LimitRange>(around, 'v1/limitranges', name),
  ])
  return [
    ...clusterHead(namespace),
    ['Status', namespace.status?.phase ?? ''],
    timedConditionRow(namespace.status?.conditions),
    ...(quotas === undefined ? [] : quotaRows(quotas)),
    ...(ranges === undefined ? [] : rangeRows(ranges)),
  ]
}

/** Undefined if the server lacks the resource. */
async function listed<T extends KubeObject>(
  around: RelatedObjects,
  resource: string,
  namespace: string,
): Promise<T[] | undefined> {
  try {
    return await around.list<T>(resource, namespace)
  } catch (error) {
    if (error instanceof StatusError && error.status.reason === 'NotFound') return undefined
    throw error
  }
}

function quotaRows(quotas: readonly ResourceQuota[]): Part[] {
  if (quotas.length === 0) return ['\nNo resource quota.']
  const rows = sortedBy(quotas, ({ metadata }) => metadata.name ?? '').map(({ metadata, spec, status }) =>
    nested(
      ['Name', metadata.name],
      ...scopeRows(spec?.scopes),
      cells('Resource', 'Used', 'Hard'),
      cells('--------', '---', '---'),
      ...byKey(status?.hard).map(([name, hard]) => cells(name, status?.used?.[name] ?? '0', hard)),
    ),
  )
  return ['\nResource Quotas', ...rows]
}

function rangeRows(ranges: readonly LimitRange[]): Part[] {
  if (ranges.length === 0) return ['\nNo LimitRange resource.']
  const underlines = LIMITS.map((name) => '-'.repeat(name.length))
  const rows = [LIMITS, underlines, ...ranges.flatMap(limitRows)]
  return ['\nResource Limits', ...rows.map(([first = '', ...others]) => cells(` ${first}`, ...others))]
}

function budgetRows(budget: PodDisruptionBudget): Part[] {
  const { spec, status } = budget
  const { minAvailable, maxUnavailable, selector } = spec ?? {}
  return [
    ...nameRows(budget),
    ['Min available', minAvailable],
    ['Max unavailable', minAvailable === undefined ? maxUnavailable : undefined],
    ['Selector', selector === undefined ? '<unset>' : labelSelectorText(selector)],
    [
      'Status',
      [
        nested(
          ['Allowed disruptions', status.disruptionsAllowed],
          ['Current', status.currentHealthy],
          ['Desired', status.desiredHealthy],
          ['Total', status.expectedPods],
        ),
      ],
    ],
  ]
}
