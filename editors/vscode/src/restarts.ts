/** How often a server that ended by itself is started again. */

/** Allows some restarts within a span of time, so that a server that cannot run is not started for ever. */
export class Restarts {
  private ends: number[] = [];

  constructor(
    readonly limit = 4,
    readonly minutes = 3,
    private readonly now: () => number = Date.now,
  ) {}

  /** Counts an end of the server and says whether it may be started again. */
  allow(): boolean {
    const since = this.now() - this.minutes * 60_000;
    this.ends = [...this.ends.filter((end) => end > since), this.now()];
    return this.ends.length <= this.limit;
  }

  /** Counts anew: the user wants a restart. */
  forget(): void {
    this.ends = [];
  }

  /** The text for the user once no restart is left. */
  get message(): string {
    return `The devlint server ended ${this.ends.length} times within ${this.minutes} minutes and is not started again.`;
  }
}
