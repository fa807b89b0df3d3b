import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { parseAuditPolicy } from './audit-policy.ts'

const HEAD = 'apiVersion: audit.k8s.io/v1\nkind: Policy\n'
const parse = (source: string, warnings: string[] = []) => parseAuditPolicy(source, (text) => void warnings.push(text))

describe('audit policy file', () => {
  it("accepts RKE's default policy", () => {
    const source =
      '{"kind":"Policy","apiVersion":"audit.k8s.io/v1","metadata":{"creationTimestamp":null},"rules":[{"level":"Metadata"}]}'
    assert.deepEqual(parse(source), { rules: [{ level: 'Metadata' }], omitStages: [], omitManagedFields: false })
  })

  it('contains rules with all fields', () => {
    const { rules, omitStages } = parse(`${HEAD}
omitStages: [RequestReceived]
rules:
- level: None
  users: [system:kube-proxy]
  verbs: [watch]
  resources: [{group: "", resources: [endpoints, pods/*], resourceNames: [a]}]
- level: Request
  userGroups: [dev]
  namespaces: [kube-system]
  omitManagedFields: false
- level: RequestResponse
  nonResourceURLs: ["/healthz*", "*"]
  omitStages: [Panic]
`)
    assert.deepEqual([rules.length, omitStages], [3, ['RequestReceived']])
    assert.deepEqual(rules[0]?.resources, [{ resources: ['endpoints', 'pods/*'], resourceNames: ['a'] }])
    assert.equal(rules[1]?.omitManagedFields, false)
  })

  it('may contain unknown fields, which cause a warning', () => {
    const warnings: string[] = []
    parse(`${HEAD}foo: 1\nrules: [{level: None, bar: 2}]\n`, warnings)
    assert.deepEqual(warnings, [
      'Audit policy contains errors, falling back to lenient decoding: strict decoding error: unknown field "foo", unknown field "rules[0].bar"',
    ])
  })

  const wrong: readonly (readonly [string, string, string])[] = [
    ['no rules', HEAD, 'loaded illegal policy with 0 rules'],
    [
      'no kind',
      'rules: [{level: Metadata}]',
      'unknown group version field audit.k8s.io/__internal, Kind=Policy in policy',
    ],
    [
      'another version',
      'apiVersion: audit.k8s.io/v1beta1\nkind: Policy\n',
      'failed decoding: no kind "Policy" is registered for version "audit.k8s.io/v1beta1" in scheme "pkg/runtime/scheme.go:111"',
    ],
    [
      'a value of another type',
      `${HEAD}rules: [{level: 5}]`,
      'failed decoding: json: cannot unmarshal number into Go struct field PolicyRule.rules.level of type v1.Level',
    ],
    [
      'an unknown level',
      `${HEAD}rules: [{level: All}, {}]`,
      '[rules[0].level: Unsupported value: "All": supported values: "None", "Metadata", "Request", "RequestResponse", rules[1].level: Required value]',
    ],
    [
      'an unknown stage',
      `${HEAD}omitStages: [X]\nrules: [{level: None}]`,
      'omitStages[0]: Invalid value: "X": allowed stages are RequestReceived,ResponseStarted,ResponseComplete,Panic',
    ],
    [
      'invalid paths',
      `${HEAD}rules: [{level: None, nonResourceURLs: [a, "/*b"]}]`,
      '[rules[0].nonResourceURLs[0]: Invalid value: "a": non-resource URL rules must begin with a \'/\' character, ' +
        'rules[0].nonResourceURLs[1]: Invalid value: "/*b": non-resource URL wildcards \'*\' must be the final character of the rule]',
    ],
    [
      'paths and resources at once',
      `${HEAD}rules: [{level: None, nonResourceURLs: ["/a"], namespaces: [x]}]`,
      'rules[0].nonResourceURLs: Invalid value: ["/a"]: rules cannot apply to both regular resources and non-resource URLs',
    ],
    [
      'resource names without resources',
      `${HEAD}rules: [{level: None, resources: [{resourceNames: [x]}]}]`,
      'rules[0].resources.resourceNames: Invalid value: ["x"]: using resourceNames requires at least one resource',
    ],
  ]
  for (const [what, source, message] of wrong) {
    it(`is refused if it has ${what}`, () => assert.throws(() => parse(source), { message }))
  }
})
