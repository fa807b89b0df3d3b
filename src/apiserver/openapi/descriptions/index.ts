/**
 * What `kubectl explain` says, for every kind served and its main fields. Loaded when OpenAPI is first asked for, and not
 * before: a server that nobody explains anything with does not carry it.
 */
import { authentication, authorization, certificates, rbac } from './access.ts'
import { apps } from './apps.ts'
import { autoscaling } from './autoscaling.ts'
import { batch } from './batch.ts'
import { clusterObjects } from './core/cluster.ts'
import { containers } from './core/container.ts'
import { pods } from './core/pod.ts'
import { storageObjects } from './core/storage.ts'
import { volumes } from './core/volume.ts'
import { admissionRegistration, apiExtensions } from './extensions.ts'
import { meta } from './meta.ts'
import { discovery, networking } from './networking.ts'
import { resource } from './resource.ts'
import {
  apiRegistration,
  apiServerInternal,
  coordination,
  events,
  flowControl,
  node,
  policy,
  scheduling,
} from './server.ts'
import { storage, storageMigration } from './storage.ts'
import { COMMON, CONDITION, type DescriptionTable, type FieldTexts, LIST } from './table.ts'

/** By package, without its version: the versions of a group differ in what they have, not in what it means. */
export const TABLES: Readonly<Record<string, DescriptionTable>> = {
  'io.k8s.api.admissionregistration': admissionRegistration,
  'io.k8s.api.apiserverinternal': apiServerInternal,
  'io.k8s.api.apps': apps,
  'io.k8s.api.authentication': authentication,
  'io.k8s.api.authorization': authorization,
  'io.k8s.api.autoscaling': autoscaling,
  'io.k8s.api.batch': batch,
  'io.k8s.api.certificates': certificates,
  'io.k8s.api.coordination': coordination,
  'io.k8s.api.core': { ...clusterObjects, ...containers, ...pods, ...storageObjects, ...volumes },
  'io.k8s.api.discovery': discovery,
  'io.k8s.api.events': events,
  'io.k8s.api.flowcontrol': flowControl,
  'io.k8s.api.networking': networking,
  'io.k8s.api.node': node,
  'io.k8s.api.policy': policy,
  'io.k8s.api.rbac': rbac,
  'io.k8s.api.resource': resource,
  'io.k8s.api.scheduling': scheduling,
  'io.k8s.api.storage': storage,
  'io.k8s.api.storagemigration': storageMigration,
  'io.k8s.apiextensions-apiserver.pkg.apis.apiextensions': apiExtensions,
  'io.k8s.apimachinery.pkg.apis.meta': meta,
  'io.k8s.kube-aggregator.pkg.apis.apiregistration': apiRegistration,
}

/** The text for a definition (`io.k8s.api.core.v1.Pod`) or one of its fields. Empty where there is nothing to say. */
export function describeDefinition(name: string, field = ''): string {
  const [, home = '', type = ''] = /^(.*)\.[^.]+\.([^.]+)$/.exec(name) ?? []
  const isList = type.endsWith('List')
  const shared = isList ? LIST : type.endsWith('Condition') ? CONDITION : {}
  const known = textOf(textsOf(home, type), field) ?? textOf(shared, field)
  if (known !== undefined) return known
  if (field === '') return isList ? `A list of objects of kind ${type.slice(0, -'List'.length)}.` : ''
  return textOf(COMMON, field) ?? ''
}

function textsOf(home: string, type: string): FieldTexts {
  const table = Object.hasOwn(TABLES, home) ? TABLES[home] : undefined
  return table !== undefined && Object.hasOwn(table, type) ? (table[type] ?? {}) : {}
}

function textOf(texts: FieldTexts, field: string): string | undefined {
  return Object.hasOwn(texts, field) ? texts[field] : undefined
}
