import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { type ManifestSource, podsOf } from './manifest.ts'

const FILE: ManifestSource = { kind: 'file', where: '/etc/m/web.yaml', nodeName: 'node1', isEnabled: () => true }
const HTTP: ManifestSource = { ...FILE, kind: 'http', where: 'https://example.com/pods' }
const web = (more = '', image = 'nginx:1'): string =>
  `apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n  containers: [{name: c, image: ${image}${more}}]\n`

describe('podsOf() for a static pod manifest', () => {
  it('returns the pod, bound to this node and with the defaults of the API server', () => {
    const [pod, ...others] = podsOf(web(), FILE)
    assert.deepEqual(others, [])
    const { name, namespace, uid = '', annotations } = pod?.metadata ?? {}
    assert.deepEqual([name, namespace], ['web-node1', 'default'])
    assert.match(uid, /^[0-9a-f]{32}$/)
    assert.deepEqual(annotations, { 'kubernetes.io/config.hash': uid, 'kubernetes.io/config.source': 'file' })
    const { nodeName, restartPolicy, tolerations, terminationGracePeriodSeconds } = pod?.spec ?? {}
    assert.deepEqual([nodeName, restartPolicy, terminationGracePeriodSeconds], ['node1', 'Always', 30])
    assert.deepEqual(tolerations, [{ operator: 'Exists', effect: 'NoExecute' }])
    assert.equal(pod?.status.phase, 'Pending')
  })

  it('returns the same UID for the same content from the same source', () => {
    const uid = (text: string, source = FILE): string => podsOf(text, source)[0]?.metadata.uid ?? ''
    assert.equal(uid(web()), uid(web()))
    const others = [uid(web('', 'nginx:2')), uid(web(), { ...FILE, where: '/etc/m/b.yaml' }), uid(web(), HTTP)]
    assert.equal(new Set([uid(web()), ...others]).size, 4)
  })

  it('accepts a PodList from a URL, and adds no tolerations', () => {
    const item = '{metadata: {name: a}, spec: {containers: [{name: c, image: i}]}}'
    const list = `apiVersion: v1\nkind: PodList\nitems: [${item}]\n`
    const [pod] = podsOf(list, HTTP)
    assert.deepEqual([pod?.metadata.name, pod?.spec.tolerations], ['a-node1', undefined])
    assert.throws(() => podsOf(list, FILE), /^Error: invalid pod: PodList/)
  })

  const wrong: readonly (readonly [what: string, text: string, message: RegExp])[] = [
    ['no name', 'apiVersion: v1\nkind: Pod\nspec: {containers: [{name: c, image: i}]}', /name is needed for the pod/],
    ['another kind', 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}', /invalid pod: ConfigMap/],
    [
      'a broken spec',
      web(', ports: [{containerPort: 0}]'),
      /invalid pod: spec.containers\[0\].ports\[0\].containerPort: /,
    ],
    ['a secret', web(', envFrom: [{secretRef: {name: s}}]'), /static pods may not reference secrets/],
    ['an account', `${web()}  serviceAccountName: a\n`, /static pods may not reference serviceaccounts/],
    [
      'a config map',
      `${web()}  volumes: [{name: v, configMap: {name: m}}]\n`,
      /static pods may not reference configmaps \(via configmap volumes\)/,
    ],
    [
      'a token',
      `${web()}  volumes: [{name: v, projected: {sources: [{serviceAccountToken: {path: t}}]}}]\n`,
      /static pods may not reference serviceaccounts \(via projected volumes\)/,
    ],
  ]
  for (const [what, text, message] of wrong) {
    it(`rejects a manifest with ${what}`, () => assert.throws(() => podsOf(text, FILE), message))
  }
})
