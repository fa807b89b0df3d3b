/** What pods are given and what limits them: config maps, secrets, accounts, quotas, limits, priorities, budgets. */
import type { ConfigMap, LimitRange, Namespace, ResourceQuota, Secret, ServiceAccount } from '#apis/core/v1.ts'
import type { PodDisruptionBudget } from '#apis/policy/v1.ts'
import type { PriorityClass } from '#apis/scheduling/v1.ts'
import { labelSelectorText } from '#meta/label-selector.ts'
import { labelsText } from '#meta/labels.ts'
import type { KubeObject } from '#meta/object.ts'
import { parseQuantity, quantityOf, quantityText, quantityValue } from '#meta/quantity.ts'
import { StatusError } from '#meta/status.ts'

import type { Surroundings } from './describer.ts'
import { Page } from './page.ts'
import { byKey, putClusterHead, putEventsOf, putHead, putTimedConditions } from './sections.ts'

function sizeOf(base64: string): number {
  return Buffer.from(base64, 'base64').length
}

export async function describeConfigMap(configMap: ConfigMap, around: Surroundings): Promise<string> {
  const page = new Page()
  putHead(page, configMap)
  page.put(0, '\nData\n====\n')
  for (const [key, value] of byKey(configMap.data)) page.put(0, `${key}:\n----\n${value}\n\n`)
  page.put(0, '\nBinaryData\n====\n')
  for (const [key, value] of byKey(configMap.binaryData)) page.put(0, `${key}: ${sizeOf(value)} bytes\n`)
  page.put(0, '\n')
  await putEventsOf(page, configMap, around)
  return page.text()
}

export function describeSecret(secret: Secret): Promise<string> {
  const page = new Page()
  const { type = '', data } = secret
  putHead(page, secret)
  page.put(0, `\nType:\t${type}\n`)
  page.put(0, '\nData\n====\n')
  for (const [key, value] of byKey(data)) {
    const isToken = key === 'token' && type === 'kubernetes.io/service-account-token'
    page.row(0, key, isToken ? Buffer.from(value, 'base64').toString() : `${sizeOf(value)} bytes`)
  }
  return Promise.resolve(page.text())
}

const PULL_SECRETS = 'Image pull secrets:'

export async function describeServiceAccount(account: ServiceAccount, around: Surroundings): Promise<string> {
  const page = new Page()
  putHead(page, account)
  const names = (account.imagePullSecrets ?? []).map(({ name }) => name ?? '')
  const [first = '<none>', ...others] = names
  page.line(0, PULL_SECRETS, first)
  for (const name of others) page.line(0, ' '.repeat(PULL_SECRETS.length), name)
  await putEventsOf(page, account, around)
  return page.text()
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

function putScopes(page: Page, level: number, scopes: readonly string[] = [], bullet = '*'): void {
  if (scopes.length === 0) return
  const sorted = [...scopes].sort()
  page.row(level, 'Scopes', sorted.join(', '))
  for (const scope of sorted) {
    if (SCOPES[scope] !== undefined) page.put(level, `${bullet} ${SCOPES[scope]}\n`)
  }
}

export function describeResourceQuota(quota: ResourceQuota): Promise<string> {
  const page = new Page()
  const { metadata, spec, status } = quota
  page.rows(0, [
    ['Name', metadata.name],
    ['Namespace', metadata.namespace ?? ''],
  ])
  putScopes(page, 0, spec?.scopes, ' *')
  page.table(
    0,
    ['Resource', 'Used', 'Hard'],
    byKey(status?.hard).map(([name, hard]) => [name, usedText(status?.used?.[name], hard), hard]),
  )
  return Promise.resolve(page.text())
}

/** In the form that the limit has. */
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

export function describeLimitRange(range: LimitRange): Promise<string> {
  const page = new Page()
  page.rows(0, [
    ['Name', range.metadata.name],
    ['Namespace', range.metadata.namespace ?? ''],
  ])
  page.table(0, LIMITS, limitRows(range))
  return Promise.resolve(page.text())
}

export async function describeNamespace(namespace: Namespace, around: Surroundings): Promise<string> {
  const page = new Page()
  const { name = '' } = namespace.metadata
  const [quotas, ranges] = await Promise.all([
    listed<ResourceQuota>(around, 'v1/resourcequotas', name),
    listed<LimitRange>(around, 'v1/limitranges', name),
  ])
  putClusterHead(page, namespace)
  page.row(0, 'Status', namespace.status?.phase ?? '')
  putTimedConditions(page, namespace.status?.conditions)
  if (quotas !== undefined) putQuotas(page, quotas)
  if (ranges !== undefined) putRanges(page, ranges)
  return page.text()
}

/** Undefined where the server has no such resource. */
async function listed<T extends KubeObject>(
  around: Surroundings,
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

function putQuotas(page: Page, quotas: readonly ResourceQuota[]): void {
  page.put(0, quotas.length === 0 ? '\nNo resource quota.\n' : '\nResource Quotas\n')
  const sorted = [...quotas].sort((one, other) => ((one.metadata.name ?? '') < (other.metadata.name ?? '') ? -1 : 1))
  for (const { metadata, spec, status } of sorted) {
    page.row(1, 'Name', metadata.name)
    putScopes(page, 1, spec?.scopes)
    page.line(1, 'Resource', 'Used', 'Hard')
    page.line(1, '--------', '---', '---')
    for (const [name, hard] of byKey(status?.hard)) page.line(1, name, status?.used?.[name] ?? '0', hard)
  }
}

function putRanges(page: Page, ranges: readonly LimitRange[]): void {
  page.put(0, ranges.length === 0 ? '\nNo LimitRange resource.\n' : '\nResource Limits\n')
  if (ranges.length === 0) return
  const indented = ([first = '', ...others]: readonly string[]): string[] => [` ${first}`, ...others]
  page.line(0, ...indented(LIMITS))
  page.line(0, ...indented(LIMITS.map((name) => '-'.repeat(name.length))))
  for (const row of ranges.flatMap(limitRows)) page.line(0, ...indented(row))
}

export async function describePriorityClass(priority: PriorityClass, around: Surroundings): Promise<string> {
  const page = new Page()
  page.rows(0, [
    ['Name', priority.metadata.name],
    ['Value', priority.value],
    ['GlobalDefault', priority.globalDefault === true],
    ['PreemptionPolicy', priority.preemptionPolicy ?? ''],
    ['Description', priority.description ?? ''],
    ['Annotations', labelsText(priority.metadata.annotations)],
  ])
  await putEventsOf(page, priority, around)
  return page.text()
}

export async function describePodDisruptionBudget(budget: PodDisruptionBudget, around: Surroundings): Promise<string> {
  const page = new Page()
  const { metadata, spec, status } = budget
  const selector = spec?.selector
  page.rows(0, [
    ['Name', metadata.name],
    ['Namespace', metadata.namespace ?? ''],
    ['Min available', spec?.minAvailable],
    ['Max unavailable', spec?.minAvailable === undefined ? spec?.maxUnavailable : undefined],
    ['Selector', selector === undefined ? '<unset>' : labelSelectorText(selector)],
  ])
  page.put(0, 'Status:\n')
  page.rows(2, [
    ['Allowed disruptions', status.disruptionsAllowed],
    ['Current', status.currentHealthy],
    ['Desired', status.desiredHealthy],
    ['Total', status.expectedPods],
  ])
  await putEventsOf(page, budget, around)
  return page.text()
}
