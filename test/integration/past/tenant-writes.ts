/** Changes a cluster with tenants at random, and keeps the model of it at each step. */
import assert from 'node:assert/strict'

import type { Random } from '#lib/random.ts'

import { definition } from '../custom-kit.ts'
import type { Bed, Json } from './bed.ts'
import {
  type Binding,
  NAMESPACE_KIND,
  type Role,
  type Rule,
  type Subject,
  type Tenant,
  TENANT_KINDS,
  type TenantKind,
  type TenantObject,
  type Tenants,
} from './tenants.ts'

const RBAC = '/apis/rbac.authorization.k8s.io/v1'
const NAMESPACES = ['blue', 'green', 'red', 'white', 'black']
const NAMES = ['a', 'b', 'c', 'd']
const GROUPS = ['devs', 'ops', 'auditors', 'guests']

export function makeTenants(random: Random, count: number): Tenant[] {
  return Array.from({ length: count }, (_, at) => {
    const own = GROUPS.filter(() => random.int(4) === 0)
    // Some are service accounts.
    const name = at % 10 === 9 ? `system:serviceaccount:${NAMESPACES[Math.floor(at / 10) % 5]}:bot` : `user-${at}`
    return { name, groups: [...own, 'system:authenticated'] }
  })
}

/** The path of a collection, or of one object of it. */
export function tenantPath({ group, resource, isNamespaced }: TenantKind, namespace: string, name = ''): string {
  const root = group === '' ? '/api/v1' : `/apis/${group}/v1`
  const scope = isNamespaced && namespace !== '' ? `/namespaces/${namespace}` : ''
  return `${root}${scope}/${resource}${name === '' ? '' : `/${name}`}`
}

function bodyOf({ kind, name, mark }: TenantObject): object {
  const metadata = { name, annotations: { mark } }
  if (kind.resource === 'runtimeclasses') return { metadata, handler: 'runc' }
  if (kind.resource === 'priorityclasses') return { metadata, value: 1 }
  if (kind.resource === 'widgets') return { apiVersion: 'ex.io/v1', kind: 'Widget', metadata, spec: {} }
  return { metadata }
}

export class TenantWrites {
  readonly steps: Tenants[] = []
  readonly #bed: Bed
  readonly #random: Random
  readonly #tenants: readonly Tenant[]
  readonly #namespaces = new Map<string, { readonly uid: string; readonly mark: string }>()
  readonly #objects = new Map<string, TenantObject>()
  readonly #roles = new Map<string, Role>()
  readonly #bindings = new Map<string, Binding>()
  #newest: TenantObject[] = []
  #made = 0

  constructor(bed: Bed, random: Random, tenants: readonly Tenant[]) {
    this.#bed = bed
    this.#random = random
    this.#tenants = tenants
  }

  async prepare(): Promise<void> {
    await this.#bed.must('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', definition('Widget'))
    for (let tries = 0; (await this.#bed.send('/apis/ex.io/v1/widgets')).status !== 200; tries++) {
      assert.ok(tries < 200, 'the definition is never served')
      await this.#bed.clock.advance(100)
    }
    for (const namespace of NAMESPACES) await this.#openNamespace(namespace)
    await this.#createMomentsRole()
    for (let write = 0; write < 60; write++) await this.#write()
    await this.#keep()
  }

  /** A few writes; then time passes, so that no two steps have the same second. */
  async step(): Promise<void> {
    for (let write = 0; write < 6; write++) await this.#write()
    await this.#keep()
  }

  async #keep(): Promise<void> {
    await this.#bed.settle()
    this.steps.push({
      revision: await this.#bed.revision(),
      timeMs: this.#bed.clock.now(),
      namespaces: new Map(this.#namespaces),
      objects: new Map(this.#objects),
      roles: new Map(this.#roles),
      bindings: new Map(this.#bindings),
      made: this.#newest,
    })
    this.#newest = []
  }

  #oneOf<T>(list: readonly T[]): T {
    return list[this.#random.int(list.length)] as T
  }

  async #write(): Promise<void> {
    const draw = this.#random.int(100)
    if (draw < 6) return this.#toggleNamespace()
    if (draw < 36) return this.#toggleObject()
    if (draw < 56) return this.#toggleRole()
    return this.#toggleBinding()
  }

  async #toggleNamespace(): Promise<void> {
    const name = this.#oneOf(NAMESPACES)
    if (!this.#namespaces.has(name)) return this.#openNamespace(name)
    const inside = <T extends { readonly namespace: string }>(all: Iterable<T>): T[] =>
      [...all].filter(({ namespace }) => namespace === name)
    const roles = inside(this.#roles.values())
    const bindings = inside(this.#bindings.values())
    await this.#closeNamespace(name)
    if (this.#namespaces.size > 0 && this.#random.int(3) === 0) return
    await this.#openNamespace(name)
    // The same users have the same permissions in the new namespace, so that only its uid tells it from the old one.
    for (const role of roles) await this.#createRole(role)
    for (const binding of bindings) await this.#bind({ ...binding, name: `b${this.#made++}` })
  }

  async #openNamespace(name: string): Promise<void> {
    const mark = this.#mark()
    const { metadata } = await this.#bed.must('POST', '/api/v1/namespaces', {
      metadata: { name, annotations: { mark } },
    })
    this.#namespaces.set(name, { uid: metadata.uid, mark })
    this.#newest.push({ kind: NAMESPACE_KIND, namespace: '', name, mark })
    // The publishers of the bed write into it.
    await this.#bed.settle()
  }

  /** Does the work of the namespace controller, which does not run here. */
  async #closeNamespace(name: string): Promise<void> {
    const path = `/api/v1/namespaces/${name}`
    for (const maps of [this.#objects, this.#roles, this.#bindings]) {
      for (const [key, { namespace }] of maps) if (namespace === name) await this.#drop(maps, key)
    }
    await this.#bed.must('DELETE', path)
    const terminating: Json = await this.#bed.must('GET', path)
    await this.#bed.must('PUT', `${path}/finalize`, { ...terminating, spec: { finalizers: [] } })
    this.#namespaces.delete(name)
  }

  async #drop(maps: Map<string, { readonly namespace: string; readonly name: string }>, key: string): Promise<void> {
    const found = maps.get(key)
    maps.delete(key)
    if (found === undefined) return
    await this.#bed.must('DELETE', 'kind' in found ? key : rbacPath(found, maps === this.#bindings))
  }

  async #toggleObject(): Promise<void> {
    const kind = this.#oneOf(TENANT_KINDS)
    const namespace = kind.isNamespaced ? this.#oneOf([...this.#namespaces.keys(), '']) : ''
    if (kind.isNamespaced && namespace === '') return
    const name = this.#oneOf(NAMES)
    const path = tenantPath(kind, namespace, name)
    if (this.#objects.has(path)) return this.#drop(this.#objects, path)
    const object = { kind, namespace, name, mark: this.#mark() }
    await this.#bed.must('POST', tenantPath(kind, namespace), bodyOf(object))
    this.#objects.set(path, object)
    this.#newest.push(object)
  }

  async #createMomentsRole(): Promise<void> {
    const rules = [{ verbs: ['get'], apiGroups: ['hyperkube.io'], resources: ['moments'] }]
    await this.#createRole({ namespace: '', name: 'moments', rules })
    // Nearly everybody may read the past, so that the other rules decide.
    for (const { name } of this.#tenants.filter((_, at) => at % 8 !== 0)) await this.#bindMoments(name)
  }

  async #bindMoments(name: string): Promise<void> {
    const subject: Subject = { kind: 'User', name }
    const role = { isClusterRole: true, name: 'moments' }
    await this.#bind({ namespace: '', name: `b${this.#made++}`, role, subject })
  }

  async #toggleRole(): Promise<void> {
    const namespace = this.#oneOf([...this.#namespaces.keys(), ''])
    const name = `role-${this.#random.int(6)}`
    const key = `${namespace}/${name}`
    if (this.#roles.has(key) && this.#random.int(2) === 0) return this.#drop(this.#roles, key)
    if (!this.#roles.has(key)) await this.#createRole({ namespace, name, rules: [this.#rule(), this.#rule()] })
  }

  async #createRole(role: Role): Promise<void> {
    await this.#bed.must('POST', rbacPath({ ...role, name: '' }, false), {
      metadata: { name: role.name },
      rules: role.rules,
    })
    this.#roles.set(`${role.namespace}/${role.name}`, role)
  }

  #rule(): Rule {
    const kinds = [...TENANT_KINDS, NAMESPACE_KIND].filter(() => this.#random.int(3) === 0)
    const chosen = kinds.length === 0 ? [this.#oneOf(TENANT_KINDS)] : kinds
    const isWide = this.#random.int(12) === 0
    const verbs = ['get', 'list', 'watch'].filter(() => this.#random.int(3) > 0)
    return {
      verbs: this.#random.int(10) === 0 ? ['*'] : verbs.length === 0 ? ['get'] : verbs,
      apiGroups: isWide ? ['*'] : [...new Set(chosen.map(({ group }) => group))],
      resources: isWide ? ['*'] : chosen.map(({ resource }) => resource),
      ...(this.#random.int(4) === 0 && { resourceNames: NAMES.filter(() => this.#random.int(2) === 0).concat('a') }),
    }
  }

  async #toggleBinding(): Promise<void> {
    const known = [...this.#bindings]
    if (this.#random.int(8) === 0) return this.#bindMoments(this.#oneOf(this.#tenants).name)
    if (known.length > 140 && this.#random.int(2) === 0) return this.#drop(this.#bindings, this.#oneOf(known)[0])
    const namespace = this.#random.int(12) === 0 ? '' : this.#oneOf([...this.#namespaces.keys()])
    const isClusterRole = namespace === '' || this.#random.int(2) === 0
    const role = { isClusterRole, name: `role-${this.#random.int(6)}` }
    const name = `b${this.#made++}`
    await this.#bind({ namespace, name, role, subject: this.#subject() })
  }

  async #bind(binding: Binding): Promise<void> {
    const { namespace, name, role, subject } = binding
    const apiGroup = 'rbac.authorization.k8s.io'
    await this.#bed.must('POST', rbacPath({ namespace, name: '' }, true), {
      metadata: { name: name },
      roleRef: { apiGroup, kind: role.isClusterRole ? 'ClusterRole' : 'Role', name: role.name },
      subjects: [subject.kind === 'ServiceAccount' ? subject : { ...subject, apiGroup }],
    })
    this.#bindings.set(`${namespace}/${name}`, binding)
  }

  #subject(): Subject {
    const draw = this.#random.int(10)
    if (draw < 2) return { kind: 'Group', name: this.#oneOf(GROUPS) }
    if (draw < 3) return { kind: 'ServiceAccount', namespace: this.#oneOf(NAMESPACES), name: 'bot' }
    return { kind: 'User', name: this.#oneOf(this.#tenants).name }
  }

  #mark(): string {
    return `mark-${this.#made++}-`
  }
}

function rbacPath(
  { namespace, name }: { readonly namespace: string; readonly name: string },
  isBinding: boolean,
): string {
  const scope = namespace === '' ? '' : `/namespaces/${namespace}`
  const plural = `${namespace === '' ? 'cluster' : ''}role${isBinding ? 'bindings' : 's'}`
  return `${RBAC}${scope}/${plural}${name === '' ? '' : `/${name}`}`
}
