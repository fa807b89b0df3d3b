import { PodTemplates } from '#apis/core/v1.ts'

import type { KindCases } from '../case.ts'

const SPEC = '/template/spec'

export const podTemplate: KindCases = {
  kind: PodTemplates,
  valid: {
    metadata: { name: 'stencil' },
    template: { metadata: { labels: { app: 'web' } }, spec: { containers: [{ name: 'web', image: 'nginx' }] } },
  },
  refused: [
    { why: 'the name has capitals', set: { '/metadata/name': 'Stencil' } },
    { why: 'the template is missing', set: { '/template': undefined } },
    { why: 'containers are missing', set: { [`${SPEC}/containers`]: [] } },
    { why: 'a container has no image', set: { [`${SPEC}/containers/0/image`]: undefined } },
    { why: 'a label of the template is none', set: { '/template/metadata/labels': { a: 'b c' } } },
    { why: 'an annotation of the template is none', set: { '/template/metadata/annotations': { 'a b': 'c' } } },
    { why: 'the restart policy is unknown', set: { [`${SPEC}/restartPolicy`]: 'Sometimes' } },
    {
      why: 'ephemeral containers are there from the start',
      set: { [`${SPEC}/ephemeralContainers`]: [{ name: 'a', image: 'b' }] },
    },
    {
      why: 'the AppArmor annotation names no container',
      set: {
        '/template/metadata/annotations': { 'container.apparmor.security.beta.kubernetes.io/x': 'runtime/default' },
      },
    },
    { why: 'the containers are removed', on: 'update', set: { [`${SPEC}/containers`]: [] } },
    { why: 'a label of the template becomes invalid', on: 'update', set: { '/template/metadata/labels/a b': 'c' } },
  ],
}
