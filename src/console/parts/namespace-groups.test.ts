/** Tests the choice of a namespace by projects. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { Project } from '../api/projects.ts'
import { namespaceGroups } from './namespace-groups.ts'

const project = (displayName: string, namespaces?: readonly string[]): Project => ({
  metadata: { name: displayName.toLowerCase() },
  spec: { displayName, ...(namespaces !== undefined && { namespaces }) },
})

describe('namespaceGroups()', () => {
  it('has one group without projects', () => {
    assert.deepEqual(namespaceGroups(['a', 'b'], []), [{ project: undefined, names: ['a', 'b'] }])
    assert.deepEqual(namespaceGroups([], []), [])
  })

  it('has a group for each project with namespaces that exist, and one for the others', () => {
    const projects = [project('Shop', ['web', 'db', 'gone']), project('Empty'), project('Gone', ['gone'])]
    assert.deepEqual(namespaceGroups(['db', 'default', 'web'], projects), [
      { project: 'Shop', names: ['db', 'web'] },
      { project: undefined, names: ['default'] },
    ])
  })

  it('has the namespaces of projects for users who may not list namespaces', () => {
    assert.deepEqual(namespaceGroups(undefined, [project('Shop', ['web'])]), [{ project: 'Shop', names: ['web'] }])
  })
})
