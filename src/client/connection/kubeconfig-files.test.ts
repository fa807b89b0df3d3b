import assert from 'node:assert/strict'
import { delimiter, join } from 'node:path'
import { describe, it } from 'node:test'

import { kubeconfigFiles } from './kubeconfig-files.ts'

describe('kubeconfigFiles() of a user', () => {
  const listed = ['/a', '/b', '/a'].join(delimiter)

  it('returns only the given file', () => assert.deepEqual(kubeconfigFiles('/c', { KUBECONFIG: listed }), ['/c']))

  it('returns the files of KUBECONFIG once each', () =>
    assert.deepEqual(kubeconfigFiles('', { KUBECONFIG: listed }), ['/a', '/b']))

  it('returns the file in the home directory without KUBECONFIG', () =>
    assert.deepEqual(kubeconfigFiles('', { HOME: '/home/jane' }), [join('/home/jane', '.kube', 'config')]))
})
