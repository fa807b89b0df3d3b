/** Tests generators whose flags need more than copying. */
import assert from 'node:assert/strict'
import { test } from 'node:test'

import { contentHash } from '../content-hash.ts'
import { rulesOf as ingressRulesOf, tlsOf } from './ingress.ts'
import { hardOf } from './quota.ts'
import { checkResources, rulesOf, verbsOf } from './roles.ts'
import { portsOf } from './service.ts'

const served = (resource: string, group = '', subresource = ''): Parameters<typeof checkResources>[0][number] => ({
  resource,
  group,
  subresource,
  isServed: true,
})

void test('kubectl create role generates one rule for each API group, sorted, with distinct resources', () => {
  const resources = [served('pods', '', 'log'), served('deployments', 'apps'), served('pods'), served('pods')]
  assert.deepEqual(rulesOf(['get'], resources, { names: ['a', 'a'], urls: ['/x'] }), [
    { verbs: ['get'], apiGroups: [''], resources: ['pods/log', 'pods'], resourceNames: ['a'] },
    { verbs: ['get'], apiGroups: ['apps'], resources: ['deployments'], resourceNames: ['a'] },
    { verbs: ['get'], nonResourceURLs: ['/x'] },
  ])
  assert.deepEqual(verbsOf(['get', 'get', '*']), ['*'])
})

void test('kubectl create role rejects verbs that a resource does not support', () => {
  assert.throws(() => checkResources([served('pods')], ['bind']), /can not perform 'bind' on 'pods' in group ''/)
  assert.throws(() => checkResources([{ ...served('x', 'y'), isServed: false }], ['get']), /"x" in group "y"/)
  checkResources([{ ...served('users'), isServed: false }], ['impersonate'])
})

void test('kubectl create ingress lists each host once, and groups hosts by TLS Secret', () => {
  const written = ['a.com/x*=s:80,tls=one', 'b.com/=s:http,tls=one', 'a.com/y=s:80,tls=two', '/=s:1']
  const rules = ingressRulesOf(written)
  assert.deepEqual(
    rules.map(({ host, http }) => [host, http.paths.map(({ path, pathType }) => `${path} ${pathType}`)]),
    [
      ['a.com', ['/x Prefix', '/y Exact']],
      ['b.com', ['/ Exact']],
      [undefined, ['/ Exact']],
    ],
  )
  assert.deepEqual(rules[1]?.http.paths[0]?.backend, { service: { name: 's', port: { name: 'http' } } })
  assert.deepEqual(tlsOf(written), [{ hosts: ['a.com', 'b.com'], secretName: 'one' }])
})

void test('kubectl create quota and service report invalid values', () => {
  assert.deepEqual(hardOf('memory=1024Mi,cpu=0.5'), { cpu: '500m', memory: '1Gi' })
  assert.throws(() => hardOf('cpu'), /Invalid argument syntax cpu, expected <resource>=<value>/)
  assert.deepEqual(portsOf('80:http'), { port: 80, targetPort: 'http' })
  assert.throws(() => portsOf('x'), /strconv.ParseUint: parsing "x": invalid syntax/)
})

// Upstream's v1.36.4: kubectl create configmap h --append-hash --dry-run=client.
void test('kubectl create configmap --append-hash adds ten letters derived from the content', () => {
  assert.equal(contentHash({ data: {}, kind: 'ConfigMap', name: '' }), '42745tchd9')
})
