/** Tests which commands fit the words that a user types. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { Kind } from '../api/kinds.ts'
import { commandsOf, fitting, searchCommands } from './commands.ts'

const kind = (name: string, plural: string, shortNames: readonly string[]): Kind => ({
  group: '',
  version: 'v1',
  plural,
  singular: name.toLowerCase(),
  kind: name,
  isNamespaced: true,
  verbs: [],
  shortNames,
  subresources: [],
})

const commands = commandsOf({
  cluster: 'local',
  clusters: [{ name: 'local', displayName: 'laptop' }],
  kinds: [
    kind('Pod', 'pods', ['po']),
    kind('PodTemplate', 'podtemplates', []),
    kind('Deployment', 'deployments', ['deploy']),
  ],
  namespace: '',
  user: null,
})

describe('fitting() for the palette', () => {
  const cases: readonly (readonly [text: string, first: string | undefined])[] = [
    ['po', 'Pods'],
    [':po', 'Pods'],
    ['pod', 'Pods'],
    ['podt', 'Pod Templates'],
    ['deploy', 'Deployments'],
    ['dpm', 'Deployments'],
    ['laptop', 'laptop'],
    ['dark', 'Switch theme'],
    ['apply', 'Create'],
    ['xyzzy', undefined],
  ]
  for (const [text, first] of cases) {
    it(`finds ${first} for the letters "${text}"`, () => assert.equal(fitting(commands, text, 5)[0]?.title, first))
  }

  it('lists in the namespace behind the kind', () => {
    const [{ action } = { action: undefined }] = fitting(commands, 'po web', 5)
    assert.deepEqual(action?.type === 'open' && action.query, { ns: 'web' })
  })
})

describe('searchCommands()', () => {
  const around = { cluster: 'local', clusters: [], kinds: [], namespace: '', user: null }
  const user = { name: 'ada', username: 'ada' }
  const pages = (text: string, changes: object): readonly string[] =>
    searchCommands(text, { ...around, ...changes }).map(({ action }) =>
      action.type === 'open' ? action.page.page : '',
    )

  it('searches the cluster of the page, and all clusters of a server', () => {
    assert.deepEqual(pages('web', {}), ['cluster-view'])
    assert.deepEqual(pages('web', { user }), ['cluster-view', 'server-view'])
    assert.deepEqual(pages('web', { user, cluster: undefined }), ['server-view'])
    assert.deepEqual(pages('w', {}), [])
  })
})
