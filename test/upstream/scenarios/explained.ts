/** Differences that are there for a reason, and the reason. */
export const EXPLAINED: readonly { readonly in: RegExp; readonly line: RegExp; readonly why: string }[] = [
  {
    in: /paused roll-out/,
    line: /Deployment web Progressing/,
    why: "upstream's second write of the status in one sync is refused as outdated, so that NewReplicaSetCreated is skipped",
  },
  {
    in: /pods are refused/,
    line: /FailedCreate/,
    why: 'how often a pod is refused before the quota is raised depends on how quickly it is tried again',
  },
  {
    in: /volumes others make/,
    line: /ExternalProvisioning/,
    why: "whether upstream's manager is done with handing a claim over when it hears of its own write, and tells once or twice, is chance",
  },
]
