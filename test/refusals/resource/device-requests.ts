/**
 * Refusal cases: invalid device requests of a ResourceClaim or a ResourceClaimTemplate, without invalid expressions.
 */
import type { Changes, Json, Refusal, Trial } from '../case.ts'

export const claimSpec: Json = {
  devices: {
    requests: [
      { name: 'gpu', exactly: { deviceClassName: 'gpu.example.com', allocationMode: 'ExactCount', count: 1 } },
      {
        name: 'nic',
        firstAvailable: [{ name: 'fast', deviceClassName: 'nic.example.com', allocationMode: 'ExactCount', count: 1 }],
      },
    ],
    constraints: [{ requests: ['gpu', 'nic'], matchAttribute: 'example.com/numa' }],
    config: [{ requests: ['gpu'], opaque: { driver: 'gpu.example.com', parameters: { a: 1 } } }],
  },
}

/** Says a member of `devices`; the cases are the same wherever those are. */
type Say = (name: string, value: unknown) => Changes

/** `place`: of the spec. */
const sayAt =
  (place: string): Say =>
  (name, value) => ({ [`${place}/devices/${name}`]: value })

const numbered = <T>(count: number, make: (name: string) => T): T[] =>
  Array.from({ length: count }, (_, at) => make(`n${at}`))

export function badClaims(place: string): readonly Refusal[] {
  const say = sayAt(place)
  return [
    ...badRequests(say),
    ...badExactRequests(say),
    ...badAlternatives(say),
    ...badConstraints(say),
    ...badConfigs(say),
  ]
}

/** Only nodes limit how many tolerations make sense. */
export function manyTolerations(place: string): readonly Trial[] {
  const tolerations = numbered(17, (key) => ({ key, operator: 'Exists' }))
  return [{ why: 'many tolerations', set: sayAt(place)('requests/0/exactly/tolerations', tolerations) }]
}

const request = (name: string): object => ({
  name,
  exactly: { deviceClassName: 'a', allocationMode: 'ExactCount', count: 1 },
})

function badRequests(say: Say): readonly Refusal[] {
  const only = (...requests: readonly object[]): Changes => ({
    ...say('requests', requests),
    ...say('constraints', []),
    ...say('config', []),
  })
  return [
    { why: 'a request without a name', set: say('requests/0/name', '') },
    { why: 'a request with a bad name', set: say('requests/0/name', 'A_b') },
    { why: 'a repeated request', set: only(request('gpu'), request('gpu')) },
    { why: 'too many requests', set: only(...numbered(33, request)) },
    { why: 'an empty request', set: say('requests/0/exactly', undefined) },
    { why: 'a request of both sorts', set: say('requests/0/firstAvailable', [{ name: 'a', deviceClassName: 'b' }]) },
  ]
}

function badExactRequests(say: Say): readonly Refusal[] {
  const exactly: Say = (name, value) => say(`requests/0/exactly/${name}`, value)
  const toleration = (members: object): Changes => exactly('tolerations', [{ operator: 'Exists', ...members }])
  const selectors = numbered(33, () => ({ cel: { expression: 'true' } }))
  return [
    { why: 'no class', set: exactly('deviceClassName', '') },
    { why: 'a class with a bad name', set: exactly('deviceClassName', 'A_b') },
    { why: 'an unknown allocation mode', set: exactly('allocationMode', 'Some') },
    { why: 'a negative count', set: exactly('count', -1) },
    { why: 'all of them and a count', set: exactly('allocationMode', 'All') },
    { why: 'an empty selector', set: exactly('selectors', [{}]) },
    { why: 'a selector too long', set: exactly('selectors', [{ cel: { expression: 'x'.repeat(10_241) } }]) },
    { why: 'too many selectors', set: exactly('selectors', selectors) },
    { why: 'admin access in a plain namespace', set: exactly('adminAccess', true) },
    {
      why: 'admin access in a plain namespace and a bad name',
      set: { ...exactly('adminAccess', true), ...say('requests/0/name', 'A_b') },
    },
    { why: 'a toleration with a bad key', set: toleration({ key: 'a b' }) },
    { why: 'a toleration with an unknown operator', set: toleration({ key: 'a', operator: 'Like' }) },
    { why: 'a toleration of any value with a value', set: toleration({ key: 'a', value: 'b' }) },
    { why: 'a toleration with a bad value', set: toleration({ key: 'a', operator: 'Equal', value: 'a b' }) },
    { why: 'a toleration with an unknown effect', set: toleration({ key: 'a', effect: 'Maybe' }) },
  ]
}

function badAlternatives(say: Say): readonly Refusal[] {
  const first: Say = (name, value) => say(`requests/1/firstAvailable/0/${name}`, value)
  const among = (...names: readonly string[]): Changes =>
    say(
      'requests/1/firstAvailable',
      names.map((name) => ({ name, deviceClassName: 'b' })),
    )
  return [
    { why: 'an alternative without a name', set: first('name', '') },
    { why: 'an alternative with a bad name', set: first('name', 'A_b') },
    { why: 'an alternative without a class', set: first('deviceClassName', '') },
    { why: 'an alternative with a negative count', set: first('count', -1) },
    { why: 'a repeated alternative', set: among('a', 'a') },
    { why: 'too many alternatives', set: among(...numbered(9, (name) => name)) },
  ]
}

function badConstraints(say: Say): readonly Refusal[] {
  const constraint = (members: object): Changes => say('constraints', [members])
  const among = (...requests: readonly string[]): Changes => constraint({ requests, matchAttribute: 'a.b/c' })
  return [
    { why: 'an empty constraint', set: constraint({ requests: ['gpu'] }) },
    { why: 'a constraint of no domain', set: constraint({ matchAttribute: 'numa' }) },
    { why: 'a constraint with bad names', set: constraint({ matchAttribute: 'A_b/c-d' }) },
    { why: 'a constraint with an empty domain', set: constraint({ matchAttribute: '/numa' }) },
    { why: 'a constraint with an empty name', set: constraint({ matchAttribute: 'example.com/' }) },
    { why: 'a constraint of distinct values without a domain', set: constraint({ distinctAttribute: 'numa' }) },
    { why: 'a constraint of an unknown request', set: among('x') },
    { why: 'a constraint of an unknown alternative', set: among('nic/x') },
    { why: 'a constraint of a request too deep', set: among('a/b/c') },
    { why: 'a repeated constraint of a request', set: among('gpu', 'gpu') },
    {
      why: 'too many constraints',
      set: say(
        'constraints',
        numbered(33, () => ({ matchAttribute: 'a.b/c' })),
      ),
    },
  ]
}

function badConfigs(say: Say): readonly Refusal[] {
  const opaque = (members: object): Changes =>
    say('config', [{ requests: ['gpu'], opaque: { driver: 'gpu.example.com', parameters: {}, ...members } }])
  const many = numbered(33, () => ({ opaque: { driver: 'a.b', parameters: {} } }))
  return [
    { why: 'a configuration without content', set: say('config', [{ requests: ['gpu'] }]) },
    { why: 'a configuration of an unknown request', set: say('config/0/requests', ['x']) },
    { why: 'a configuration of no driver', set: opaque({ driver: '' }) },
    { why: 'a configuration of a driver with a bad name', set: opaque({ driver: 'a_b' }) },
    { why: 'a configuration without parameters', set: opaque({ parameters: undefined }) },
    { why: 'a configuration whose parameters are a list', set: opaque({ parameters: [1] }) },
    { why: 'a configuration too long', set: opaque({ parameters: { a: 'x'.repeat(10_241) } }) },
    { why: 'too many configurations', set: say('config', many) },
  ]
}
