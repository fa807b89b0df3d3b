import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { groups, type Kind } from '#apis/kinds.ts'
import { schemaFor } from '#apis/schemas.ts'
import { isStable } from '#meta/kind.ts'

import { type ApiFacts, type ApiPath, type Operation, pathsOf, rootOf, sharedParameters } from './operations.ts'

const facts: ApiFacts = { schemaFor, customOf: () => undefined, deleteAnswersObject: ({ kind }) => kind === 'Pod' }
const versions = groups.flatMap((group) => group.versions).filter(({ version }) => isStable(version))
const isServed = ({ gate }: Kind): boolean => gate === undefined

/** The number of upstream's documented operations for each group version in v1.36. */
const COUNTS: Readonly<Record<string, number>> = {
  '/api/v1': 248,
  '/apis/admissionregistration.k8s.io/v1': 58,
  '/apis/apiextensions.k8s.io/v1': 13,
  '/apis/apiregistration.k8s.io/v1': 13,
  '/apis/apps/v1': 77,
  '/apis/authentication.k8s.io/v1': 3,
  '/apis/authorization.k8s.io/v1': 5,
  '/apis/autoscaling/v1': 15,
  '/apis/autoscaling/v2': 15,
  '/apis/batch/v1': 29,
  '/apis/certificates.k8s.io/v1': 16,
  '/apis/coordination.k8s.io/v1': 12,
  '/apis/discovery.k8s.io/v1': 12,
  '/apis/events.k8s.io/v1': 12,
  '/apis/flowcontrol.apiserver.k8s.io/v1': 25,
  '/apis/networking.k8s.io/v1': 56,
  '/apis/node.k8s.io/v1': 10,
  '/apis/policy/v1': 15,
  '/apis/rbac.authorization.k8s.io/v1': 41,
  '/apis/resource.k8s.io/v1': 44,
  '/apis/scheduling.k8s.io/v1': 10,
  '/apis/storage.k8s.io/v1': 60,
}

const paths = new Map<string, ApiPath>(
  versions.flatMap(({ kinds }) => pathsOf(kinds.filter(isServed), facts).map((path) => [path.path, path] as const)),
)

function find(path: string): ApiPath {
  return paths.get(path) ?? assert.fail(`no path ${path}`)
}

function operation(path: string, method: string): Operation {
  return find(path).operations.find((one) => one.method === method) ?? assert.fail(`no ${method} on ${path}`)
}

describe('operations in the OpenAPI documents', () => {
  it("are as many as upstream's in each stable group version", () => {
    const found = versions.map((version) => {
      const operations = pathsOf(version.kinds.filter(isServed), facts).flatMap((path) => path.operations)
      return [rootOf(version), operations.length]
    })
    assert.deepEqual(Object.fromEntries(found), COUNTS)
  })

  it('have unique operation IDs', () => {
    const ids = [...paths.values()].flatMap(({ operations }) => operations.map(({ id }) => id))
    assert.equal(new Set(ids).size, ids.length)
  })

  it('have the operation IDs that client generators expect', () => {
    const named = (path: string, method: string): string => operation(path, method).id
    const deployments = '/apis/apps/v1/namespaces/{namespace}/deployments'
    assert.equal(named(deployments, 'delete'), 'deleteAppsV1CollectionNamespacedDeployment')
    assert.equal(named(`${deployments}/{name}/scale`, 'patch'), 'patchAppsV1NamespacedDeploymentScale')
    assert.equal(named('/apis/apps/v1/deployments', 'get'), 'listAppsV1DeploymentForAllNamespaces')
    assert.equal(named('/apis/apps/v1/watch/deployments', 'get'), 'watchAppsV1DeploymentListForAllNamespaces')
    assert.equal(
      named('/apis/rbac.authorization.k8s.io/v1/clusterroles/{name}', 'get'),
      'readRbacAuthorizationV1ClusterRole',
    )
  })

  it('list the options of exec, logs and proxies', () => {
    const pod = '/api/v1/namespaces/{namespace}/pods/{name}'
    const names = (path: string): string[] => sharedParameters(find(path)).shared.map(({ name }) => name)
    assert.deepEqual(names(`${pod}/exec`), [
      'command',
      'container',
      'name',
      'namespace',
      'stderr',
      'stdin',
      'stdout',
      'tty',
    ])
    assert.deepEqual(
      find(`${pod}/exec`).operations.map(({ method }) => method),
      ['get', 'post'],
    )
    assert.equal(operation(`${pod}/log`, 'get').answer, 'text')
    assert.ok(!names(`${pod}/log`).includes('sinceTime'), 'a time is no simple parameter')
    assert.deepEqual(names(`${pod}/proxy/{path}`), ['name', 'namespace', 'path', 'path'])
    assert.equal(find(`${pod}/proxy/{path}`).operations.length, 7)
  })

  it('share the parameters of their path', () => {
    const path = find('/api/v1/nodes/{name}')
    const { shared, own } = sharedParameters(path)
    assert.deepEqual(
      shared.map(({ name }) => name),
      ['name', 'pretty'],
    )
    assert.deepEqual(
      own(operation('/api/v1/nodes/{name}', 'patch')).map(({ name }) => name),
      ['dryRun', 'fieldManager', 'fieldValidation', 'force'],
    )
  })

  it('document the response of a deletion', () => {
    const answer = (path: string): unknown => operation(path, 'delete').answer
    assert.equal((answer('/api/v1/namespaces/{namespace}/pods/{name}') as Kind).kind, 'Pod')
    assert.equal((answer('/api/v1/nodes/{name}') as Kind).kind, 'Status')
  })
})
