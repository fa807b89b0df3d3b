import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { describe, it } from 'node:test'

import { apiVersionOf } from '#meta/kind.ts'

import { type Deployment, Deployments } from './apps/v1.ts'
import { SubjectAccessReviews } from './authorization/v1.ts'
import { HorizontalPodAutoscalers } from './autoscaling/v1.ts'
import { ClusterTrustBundles } from './certificates/v1beta1.ts'
import { Endpoints, Events, Pods } from './core/v1.ts'
import { groups, type Kind, kind, kindFor, preferredKind, resourceFor, type ServedVersion } from './kinds.ts'
import { NetworkPolicies } from './networking/v1.ts'
import { schemaFor } from './schemas.ts'

const facts = process.env['HYPERKUBE_API_FACTS'] ?? resolve(import.meta.dirname, '../../../shared/kubernetes-api')
const discovery = `${facts}/discovery`
const skip = existsSync(discovery) ? false : `no API facts in "${facts}"`
const versions = groups.flatMap((group) => group.versions)
const kinds = versions.flatMap((version) => version.kinds)

describe('table of API kinds', () => {
  it('contains verbs, scope and names of a kind', () => {
    assert.deepEqual(Deployments, {
      group: 'apps',
      version: 'v1',
      kind: 'Deployment',
      plural: 'deployments',
      singular: 'deployment',
      listKind: 'DeploymentList',
      namespaced: true,
      shortNames: ['deploy'],
      categories: ['all'],
      verbs: ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch'],
      subresources: [
        {
          name: 'scale',
          kind: { group: 'autoscaling', version: 'v1', kind: 'Scale' },
          verbs: ['get', 'patch', 'update'],
        },
        {
          name: 'status',
          kind: { group: 'apps', version: 'v1', kind: 'Deployment' },
          verbs: ['get', 'patch', 'update'],
        },
      ],
      storage: { group: 'apps', version: 'v1' },
      storageVersionHash: '8aSe+NMegvE=',
    })
  })

  it('returns the same object from an import, kindFor() and resourceFor()', () => {
    assert.equal(kindFor({ group: '', version: 'v1', kind: 'Pod' }), Pods)
    assert.equal(resourceFor({ group: '', version: 'v1', resource: 'pods' }), Pods)
    assert.equal(
      resourceFor({ group: 'networking.k8s.io', version: 'v1', resource: 'networkpolicies' }),
      NetworkPolicies,
    )
    assert.equal(Endpoints.kind, 'Endpoints')
  })

  it('gives each kind the TypeScript type of its objects', () => {
    const nameOf = <T extends { metadata: { name?: string } }>(_kind: Kind<T>, object: T): string =>
      object.metadata.name!
    const deployment: Deployment = {
      metadata: { name: 'web' },
      spec: { selector: {}, template: { metadata: {}, spec: { containers: [] } }, strategy: {} },
      status: {},
    }
    assert.equal(nameOf(Deployments, deployment), 'web')
    // @ts-expect-error A Deployment is no Pod.
    assert.equal(nameOf(Pods, deployment), 'web')
  })

  it('has no entry for a list, a subresource or a custom resource', () => {
    assert.equal(kindFor({ group: 'autoscaling', version: 'v1', kind: 'Scale' }), undefined)
    assert.equal(kindFor({ group: '', version: 'v1', kind: 'PodList' }), undefined)
    assert.equal(kindFor({ group: '__proto__', version: 'v1', kind: 'constructor' }), undefined)
    assert.equal(resourceFor({ group: '', version: 'v1', resource: 'pods/log' }), undefined)
    assert.throws(() => kind('v1', 'widgets'), /No resource "widgets" in "v1"/)
  })

  it('contains the storage version of each kind that is stored', () => {
    assert.deepEqual(HorizontalPodAutoscalers.storage, { group: 'autoscaling', version: 'v2' })
    assert.deepEqual(kindFor({ group: 'events.k8s.io', version: 'v1', kind: 'Event' })?.storage, Events.storage)
    assert.deepEqual(Events.storage, { group: '', version: 'v1' })
    assert.equal(SubjectAccessReviews.storage, undefined)
  })

  it('has the same storage version for all versions of a resource, and a schema for that version', () => {
    const stored = new Map<string, string>()
    for (const { group, plural, kind: name, storage } of kinds) {
      if (storage === undefined) continue
      const known = stored.getOrInsert(`${group}/${plural}`, apiVersionOf(storage))
      assert.equal(apiVersionOf(storage), known, `${group}/${plural}`)
      assert.ok(schemaFor({ ...storage, kind: name }), name)
    }
  })

  it('contains the feature gate that enables a kind', () => {
    assert.equal(ClusterTrustBundles.gate, 'ClusterTrustBundle')
    assert.equal(Pods.gate, undefined)
  })

  it('has a schema for each kind, its list and the body of each subresource', () => {
    for (const item of kinds) {
      assert.ok(schemaFor(item), item.kind)
      if (item.verbs.includes('list')) assert.ok(schemaFor({ ...item, kind: item.listKind }), item.listKind)
      for (const { kind: body } of item.subresources) assert.ok(schemaFor(body), body.kind)
    }
  })
})

describe('group versions that are served by default', () => {
  it('are the 22 of upstream', () => {
    const served = versions.filter((version) => version.servedByDefault).map(apiVersionOf)
    assert.deepEqual(served.sort(), [
      'admissionregistration.k8s.io/v1',
      'apiextensions.k8s.io/v1',
      'apiregistration.k8s.io/v1',
      'apps/v1',
      'authentication.k8s.io/v1',
      'authorization.k8s.io/v1',
      'autoscaling/v1',
      'autoscaling/v2',
      'batch/v1',
      'certificates.k8s.io/v1',
      'coordination.k8s.io/v1',
      'discovery.k8s.io/v1',
      'events.k8s.io/v1',
      'flowcontrol.apiserver.k8s.io/v1',
      'networking.k8s.io/v1',
      'node.k8s.io/v1',
      'policy/v1',
      'rbac.authorization.k8s.io/v1',
      'resource.k8s.io/v1',
      'scheduling.k8s.io/v1',
      'storage.k8s.io/v1',
      'v1',
    ])
  })

  it("are listed in upstream's order of preference", () => {
    const hpa = { group: 'autoscaling', resource: 'horizontalpodautoscalers' }
    assert.equal(preferredKind(hpa)?.version, 'v2')
    assert.equal(
      preferredKind(hpa, ({ version }) => version !== 'v2'),
      HorizontalPodAutoscalers,
    )
    assert.equal(preferredKind({ group: 'certificates.k8s.io', resource: 'clustertrustbundles' }), undefined)
    assert.equal(
      preferredKind({ group: 'certificates.k8s.io', resource: 'clustertrustbundles' }, () => true),
      ClusterTrustBundles,
    )
    assert.equal(preferredKind({ group: 'example.com', resource: 'widgets' }), undefined)
  })
})

describe('discovery documents', { skip }, () => {
  it('list the same groups and versions as upstream, in the same order', () => {
    const expected = readGroups().map((item) => [item.metadata.name, item.versions.map(({ version }) => version)])
    const [core, ...others] = groups.map(({ name, versions }) => [name, versions.map(({ version }) => version)])
    assert.deepEqual(core, ['', ['v1']])
    assert.deepEqual(others, expected)
    const { groups: documented } = read('apis.json') as {
      groups: { name: string; preferredVersion: { version: string } }[]
    }
    assert.deepEqual(
      groups.slice(1).map(({ name, versions: [first] }) => [name, first?.version]),
      documented.map(({ name, preferredVersion }) => [name, preferredVersion.version]),
    )
  })

  it('list the same resources in aggregated form', () => {
    for (const { metadata, versions: documented } of readGroups()) {
      for (const { version, resources } of documented) {
        const served = versions.find((item) => item.group === metadata.name && item.version === version)
        assert.deepEqual(served?.kinds.map(aggregated), resources, `${metadata.name}/${version}`)
      }
    }
  })

  const lists = skip ? [] : readdirSync(discovery).filter((file) => /^apis?__.*v\d\w*\.json$/.test(file))

  it('exist for each group version', () => assert.equal(lists.length, versions.length))

  for (const file of lists) {
    it(`list the same resources as upstream in ${file}`, () => {
      const { groupVersion, resources } = read(file) as { groupVersion: string; resources: object[] }
      const served = versions.find((version) => apiVersionOf(version) === groupVersion)
      assert.deepEqual(resourceLines(served!), resources)
    })
  }
})

interface GroupDocument {
  readonly metadata: { readonly name: string }
  readonly versions: readonly { readonly version: string; readonly resources: readonly object[] }[]
}

function read(file: string): unknown {
  return JSON.parse(readFileSync(`${discovery}/${file}`, 'utf8'))
}

function readGroups(): readonly GroupDocument[] {
  return (read('aggregated_v2.json') as { items: GroupDocument[] }).items
}

function aggregated(item: Kind): object {
  const { plural, shortNames, categories, verbs, subresources } = item
  const own = apiVersionOf(item)
  return {
    resource: plural,
    responseKind: { group: '', version: '', kind: item.kind },
    scope: item.namespaced ? 'Namespaced' : 'Cluster',
    singularResource: item.singular,
    verbs,
    ...(shortNames.length > 0 && { shortNames }),
    ...(categories.length > 0 && { categories }),
    ...(subresources.length > 0 && {
      subresources: subresources.map((sub) => ({
        subresource: sub.name,
        responseKind: apiVersionOf(sub.kind) === own ? { group: '', version: '', kind: sub.kind.kind } : sub.kind,
        verbs: sub.verbs,
      })),
    }),
  }
}

/** The lines of an APIResourceList. */
function resourceLines(served: ServedVersion): object[] {
  return served.kinds.flatMap((item) => {
    const { kind: name, plural, singular, namespaced, shortNames, categories, verbs, storageVersionHash } = item
    const line = {
      kind: name,
      name: plural,
      namespaced,
      singularName: singular,
      verbs,
      ...(shortNames.length > 0 && { shortNames }),
      ...(categories.length > 0 && { categories }),
      ...(storageVersionHash !== undefined && { storageVersionHash }),
    }
    const subresources = item.subresources.map((sub) => ({
      kind: sub.kind.kind,
      name: `${plural}/${sub.name}`,
      namespaced,
      singularName: '',
      verbs: sub.verbs,
      ...(apiVersionOf(sub.kind) !== apiVersionOf(item) && { group: sub.kind.group, version: sub.kind.version }),
    }))
    return [line, ...subresources]
  })
}
