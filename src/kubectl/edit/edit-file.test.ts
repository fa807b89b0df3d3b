import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { hasContent, headerText, meaningOf, problemOf, withoutComments } from './edit-file.ts'
import { editorWords } from './editor.ts'

describe('file of kubectl edit', () => {
  it('has errors of the last attempt above the object', () => {
    const text = headerText(false, [{ head: 'pods "a" was not valid', details: ['spec: bad\nvery'] }])
    assert.ok(text.endsWith('#\n# pods "a" was not valid:\n# * spec: bad\n# very\n#\n'))
  })

  it('counts as unchanged if only comments and layout differ', () => {
    assert.equal(meaningOf('# x\na: 1\nb: [2]\n'), meaningOf('b:\n- 2\na: 1'))
    assert.notEqual(meaningOf('a: 1'), meaningOf('a: 2'))
    assert.ok(!hasContent('# only\n\n  # comments\n'))
    assert.equal(withoutComments('# a\nb: 1\n  # c\n'), 'b: 1\n')
  })

  it('is rejected if it contains no object', () => {
    assert.equal(problemOf('apiVersion: v1\nkind: Pod'), undefined)
    assert.equal(problemOf('kind: Pod'), 'apiVersion not set')
    assert.equal(problemOf('a: b'), '[apiVersion not set, kind not set]')
    assert.match(problemOf('a: [') ?? '', /^yaml: /)
  })
})

describe('editor of kubectl edit', () => {
  for (const [env, words] of [
    [{}, ['vi']],
    [{ EDITOR: 'nano' }, ['nano']],
    [{ EDITOR: 'nano', KUBE_EDITOR: 'emacs -nw' }, ['emacs', '-nw']],
    [{ EDITOR: "code --wait 'x y'", SHELL: '/bin/sh' }, ['/bin/sh', '-c', "code --wait 'x y'"]],
  ] as const) {
    it(`is ${words.join(' ')} with the environment ${JSON.stringify(env)}`, () =>
      assert.deepEqual(editorWords(env), words))
  }
})
