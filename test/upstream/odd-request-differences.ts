/**
 * Lists the accepted differences between upstream's responses to unusual requests and ours, each with its reason.
 * `sameBut` removes them from a response, so that the rest is still compared byte for byte.
 */
import type { Ask } from './odd-request-list.ts'

interface Difference {
  /** How the name of the story begins. */
  readonly story: string
  readonly why: string
  readonly appliesTo: (ask: Ask) => boolean
  readonly remove: (answer: string) => string
}

const DIFFERENCES: readonly Difference[] = [
  {
    story: 'Value custom.example.com/v1',
    why: 'Members of a JSON object have no order. Upstream sorts those of custom resources, which it keeps in Go maps.',
    appliesTo: () => true,
    remove: sortMembers,
  },
  {
    story: 'Value custom.example.com/v1',
    why: 'Upstream forgets the managedFields of an object when a patch of its status names another kind, which it ignores otherwise.',
    appliesTo: ({ path, body }) => path.includes('/status?') && JSON.stringify(body) === '{"kind":"Other"}',
    remove: (answer) => answer.replace(/"managedFields":\[\{.*?\}\],/, ''),
  },
  {
    story: 'Job batch/v1',
    why: 'Upstream shows the template by the fields of its Go type, and we show it as JSON.',
    appliesTo: ({ method }) => method === 'PUT',
    remove: (answer) =>
      answer.replaceAll(/(spec\.template: |")Invalid value: \{.*?\}: field is immutable/g, '$1Invalid value: TEMPLATE'),
  },
  {
    story: 'CustomResourceDefinition apiextensions.k8s.io/v1',
    why: 'How soon a deleted definition is gone depends on when the controller that cleans up has run.',
    appliesTo: ({ method }) => method === 'GET',
    remove: (answer) => (/^404|"deletionTimestamp"/.test(answer) ? 'deleted' : answer),
  },
  {
    story: 'DaemonSet apps/v1',
    why: 'Upstream makes Tables and PartialObjectMetadata of its internal object, which has a field for this annotation and loses it there. A client that reads metadata only should see the annotations of the object.',
    appliesTo: ({ accept = '' }) => accept.includes(';as='),
    remove: (answer) => answer.replace(/"annotations":\{"deprecated\.daemonset\.template\.generation":"\d+"\},/, ''),
  },
  {
    story: 'IPAddress networking.k8s.io/v1',
    why: 'Rows of upstream have a third cell, the age, for which its Table has no column. Printers ignore it.',
    appliesTo: ({ accept = '' }) => accept.includes('as=Table'),
    remove: (answer) => answer.replace(/("cells":\["[^"]*","[^"]*"),"AGE"\]/, '$1]'),
  },
]

/** The answer to a request of a story without the differences that stay. */
export function sameBut(story: string, ask: Ask, answer: string): string {
  return DIFFERENCES.filter((one) => story.startsWith(one.story) && one.appliesTo(ask)).reduce(
    (text, { remove }) => remove(text),
    answer,
  )
}

/** The body of an answer, and every object that a message in it quotes, with members in the order of their names. */
function sortMembers(answer: string): string {
  return answer
    .split('\n')
    .map((line) => (line.startsWith('{') && line.endsWith('}') ? JSON.stringify(sorted(JSON.parse(line))) : line))
    .join('\n')
}

function sorted(value: unknown): unknown {
  if (typeof value === 'string') return value.replaceAll(/"(?:\{(?:[^"\\]|\\.)*\})"/g, sortQuoted)
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .sort(([one], [other]) => (one < other ? -1 : 1))
      .map(([name, member]) => [name, sorted(member)]),
  )
}

/** A quoted text that is no JSON stays as it is. */
function sortQuoted(quoted: string): string {
  try {
    return JSON.stringify(JSON.stringify(sorted(JSON.parse(JSON.parse(quoted) as string))))
  } catch {
    return quoted
  }
}
